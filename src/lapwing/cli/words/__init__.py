"""The words of the command line as dataclasses: one class per command, one field per option. Nothing heavy here."""
