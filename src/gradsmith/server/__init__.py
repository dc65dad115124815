"""`gradsmith server`: a language server on standard input and output, for any editor that speaks the protocol.

Three processes, so that typing never waits and nothing that is typed is executed:
- the server itself (`app.py`) speaks the protocol and remembers documents;
- the linter (`linter.py`) reads source, and imports neither torch nor the user's code;
- a worker (`worker.py`) runs one check or one derivation that somebody asked for, and ends.
"""
