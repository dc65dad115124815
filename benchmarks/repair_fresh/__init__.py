"""Twenty Functions with a mistake that a person makes, of kinds that `repair_breaking` does not have; written before the first run.

A file is a right Function. `WRONG` holds pairs (right text, wrong text): with the wrong texts put in, it is the subject of the
benchmark. `KIND` says what is wrong with it. `gradsmith_inputs` is what the user declared; `ELSEWHERE`, where there is one,
are further calls at which the repaired Function is judged.
"""
