"""Functions from observations to components: tables, closed forms and networks."""
