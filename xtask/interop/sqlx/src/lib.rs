//! Contains no code. `tests/` shows that sqlx completes tasks of Onward in its own transactions.
