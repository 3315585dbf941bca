//! Every store, under one suite of cases and against one another; and SQLite against kills, damage and age.

mod agreement;
mod broken;
mod child;
mod damage;
mod kill;
mod load;
mod memory;
mod mount;
mod sqlite;
mod takeover;
mod upgrade;
