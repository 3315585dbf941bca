//! Payments that happen exactly once, on PostgreSQL. A trigger submits each payment in the
//! transaction that stores its order. The handler moves the money and completes the task in one
//! transaction. Start it on as many machines as you like, and kill any of them at any point.
//!
//! `ONWARD_STORE=postgres://onward@127.0.0.1/shop cargo run --features postgres --example
//! payments_on_postgres [ORDERS]`

use std::sync::Arc;

use onward::handlers::Finished;
use onward::prelude::*;
use onward::store::PostgresStore;
use onward_store::tokio_postgres::{Client, Error, NoTls, connect};

/// The shop's own tables, and a trigger that makes an order and its payment exist together or not
/// at all.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS shop_order (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, cents bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS shop_payment (number bigint PRIMARY KEY, cents bigint NOT NULL);
    CREATE OR REPLACE FUNCTION shop_order_arrived() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM onward.onward_submit('pay', row_to_json(NEW)::text, key => NEW.number::text);
        RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER arrived AFTER INSERT ON shop_order FOR EACH ROW EXECUTE FUNCTION shop_order_arrived();
";

async fn client(url: &str) -> Result<Client, Error> {
    let (client, connection) = connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Pays an order. A shop with many payments a second would keep its connections in a pool.
async fn pay(url: Arc<str>, context: Context) -> Result<Finished, Failure> {
    let mut client = client(&url).await?;
    let transaction = client.transaction().await?;
    let pay = "INSERT INTO shop_payment SELECT o.number, o.cents FROM shop_order o, json_to_record($1::text::json) AS p (number bigint) \
               WHERE o.number = p.number";
    transaction.execute(pay, &[&std::str::from_utf8(context.payload())?]).await?;
    let finishing = context.finish_on(&transaction, "paid").await?; // last in the transaction
    transaction.commit().await?;
    Ok(finishing.committed())
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "its output")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Ok(url) = std::env::var("ONWARD_STORE") else {
        println!("set ONWARD_STORE to the URL of a PostgreSQL database, such as postgres://onward@127.0.0.1/shop");
        return Ok(());
    };
    let orders: i64 = std::env::args().nth(1).map_or(Ok(100), |text| text.parse())?;
    let store = Arc::new(PostgresStore::open(&url).await?); // first: it makes the function
    let shop = client(&url).await?;
    shop.batch_execute(TABLES).await?;
    shop.execute("INSERT INTO shop_order (cents) SELECT number * 100 FROM generate_series(1, $1) number", &[&orders])
        .await?;

    let engine = Engine::builder().store(store).open().await?;
    let url: Arc<str> = url.into();
    engine.handle("pay", move |context| pay(Arc::clone(&url), context));
    while shop.query_one("SELECT count(*) FROM shop_payment", &[]).await?.get::<_, i64>(0)
        < shop.query_one("SELECT count(*) FROM shop_order", &[]).await?.get::<_, i64>(0)
    {
        engine.drain().await?;
    }
    let sums = "SELECT (SELECT sum(cents)::bigint FROM shop_order), (SELECT sum(cents)::bigint FROM shop_payment)";
    let sums = shop.query_one(sums, &[]).await?;
    let (ordered, paid): (i64, i64) = (sums.get(0), sums.get(1));
    println!("ordered {ordered} cents, paid {paid}");
    assert_eq!(paid, ordered);
    Ok(())
}
