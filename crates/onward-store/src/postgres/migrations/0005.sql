-- How many transactions have written: who finds the number of its own knows that nobody else has written since, and need not read again what it knows.
CREATE SEQUENCE {schema}.last_write MINVALUE 0 START 0;
