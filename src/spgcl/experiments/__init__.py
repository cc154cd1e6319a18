"""The paper's tables and figures: plans as data, runs, results, and what is made from them."""
