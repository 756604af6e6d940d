"""The paper's lemmas, corollary and theorem as numerical claims on small graphs."""
