//! `onward workflow generate`: the code that it prints is in `generated_code`, and runs here.

use std::sync::{Arc, Mutex};

use onward::workflow::template::TemplateFile;
use onward::{Context, Engine, Failure, TaskState};
use serde_json::{Value, json};

use crate::harness::Sandbox;

#[rustfmt::skip]
#[expect(unreachable_pub, reason = "the code is that of a file of its own")]
#[path = "generated_code/orders.rs"]
mod orders;

use orders::{
    OrdersHandlers, OrdersInput, OrdersInputLinesItem, OrdersInputType, OrdersResult, ParcelsShip, PricesTotal,
    StockRelease, StockReserve, StockReserveResult,
};

const TEMPLATE: &str = include_str!("generated_code/orders.yaml");
const CODE: &str = include_str!("generated_code/orders.rs");

/// Shows: W13
#[test]
fn the_code_for_rust_is_that_of_the_example() {
    let sandbox = Sandbox::new();
    sandbox.write("orders.yaml", TEMPLATE);
    let ran = sandbox.onward(&["workflow", "generate", "orders.yaml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout, CODE, "write the new output to tests/it/generated_code/orders.rs if it is meant");
    let json = sandbox.json(&["workflow", "generate", "orders.yaml", "--language", "rust"]);
    assert_eq!((&json[0]["name"], &json[0]["code"]), (&json!("shop/orders"), &json!(CODE)));
}

/// Shows: W13
#[test]
fn the_code_for_python_and_typescript_is_that_of_the_examples() {
    let sandbox = Sandbox::new();
    sandbox.write("orders.yaml", TEMPLATE);
    for (language, code, file) in [
        ("python", include_str!("generated_code/orders.py.txt"), "orders.py.txt"),
        ("typescript", include_str!("generated_code/orders.ts.txt"), "orders.ts.txt"),
    ] {
        let ran = sandbox.onward(&["workflow", "generate", "orders.yaml", "--language", language]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert_eq!(ran.stdout, code, "write the new output to tests/it/generated_code/{file} if it is meant");
    }
}

/// Handlers that keep what they got.
#[derive(Debug, Clone, Default)]
struct Shop(Arc<Mutex<Vec<StockReserve>>>);

impl OrdersHandlers for Shop {
    async fn parcels_ship(&self, task: ParcelsShip, _: Context) -> Result<OrdersResult, Failure> {
        let ids: Vec<i64> = task.results.reserve.iter().flatten().flatten().map(|reserved| reserved.id).collect();
        let parcel = format!("{} {ids:?} {:?}", task.input.order, task.results.price);
        Ok(OrdersResult { parcel })
    }

    async fn prices_total(&self, task: PricesTotal, _: Context) -> Result<f64, Failure> {
        Ok(task.0.iter().map(|line| line.quantity as f64).sum())
    }

    async fn stock_release(&self, _: StockRelease, _: Context) -> Result<Value, Failure> {
        Ok(Value::Null)
    }

    async fn stock_reserve(&self, task: StockReserve, _: Context) -> Result<StockReserveResult, Failure> {
        let id = task.index + 40;
        self.0.lock().map_err(|error| Failure::permanent(error.to_string()))?.push(task);
        Ok(StockReserveResult { id })
    }
}

/// Shows: W13
#[tokio::test]
async fn a_run_has_the_generated_types_from_its_start_to_its_result() {
    let engine = Engine::builder().memory().open().await.unwrap();
    engine.add_workflow(TemplateFile::read("orders.yaml", TEMPLATE).unwrap());
    let shop = Shop::default();
    orders::register(&engine, shop.clone());
    let line = |article: &str, quantity| OrdersInputLinesItem { article: article.to_owned(), quantity };
    let input = OrdersInput {
        order: "A-17".to_owned(),
        lines: vec![line("tea", 2), line("cup", 1)],
        r#type: Some(OrdersInputType::ByPhone),
        note: None,
        labels: None,
    };
    let run = orders::start(&engine, &input).await.unwrap().id;
    engine.run_until_idle().await.unwrap();
    let record = onward_store::StoreReads::task(&**engine.store(), run).await.unwrap().unwrap();
    assert_eq!(record.state, TaskState::Completed, "{:?}", record.errors);
    let result: OrdersResult = serde_json::from_slice(record.result.bytes().unwrap()).unwrap();
    assert_eq!(result.parcel, "A-17 [40, 41] Some(3.0)");
    let mut reserved = shop.0.lock().unwrap().clone();
    reserved.sort_by_key(|task| task.index);
    let places: Vec<(&str, &OrdersInputLinesItem)> =
        reserved.iter().map(|task| (task.place.as_str(), &task.line)).collect();
    assert_eq!(places, [("shelf 0", &input.lines[0]), ("shelf 1", &input.lines[1])]);
}

/// Shows: W1
#[test]
fn a_missing_file_is_named_even_where_there_is_no_store() {
    let ran = Sandbox::new().onward(&["workflow", "generate", "missing.yaml"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("there is no file `missing.yaml`"), "{ran:?}");
}
