//! Holds no code: `tests/` shows that sqlx finishes tasks of Onward in its own transactions.
