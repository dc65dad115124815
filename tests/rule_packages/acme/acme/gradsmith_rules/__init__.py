"""How gradients are written at Acme.

Every module beside this one is a rule.
"""
