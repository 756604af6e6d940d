"""The paper: its studies, theory and published numbers, as a client of lapwing."""
