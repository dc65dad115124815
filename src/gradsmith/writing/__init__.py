"""Functions written for the user and proved before they are shown: `gs.derive`, `gradsmith derive`, `gradsmith new`."""
