"""Is a gradient that is wrong on a guess right elsewhere, on inputs of the kind its author may have meant?

Each function here takes the subject and the guess, and gives back other inputs on which every gradient is right, in
words; or None.
"""
