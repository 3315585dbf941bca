//! The handlers of the graphs.

use std::ops::Range;

use onward::{Context, Engine, Failure};
use serde::{Deserialize, Serialize};

/// Registers the handlers.
pub(crate) fn register(engine: &Engine) {
    on_numbers(engine, "square", |numbers| numbers.iter().product::<u64>().pow(2).to_string());
    on_numbers(engine, "sum", |numbers| numbers.iter().sum::<u64>().to_string());
    on_numbers(engine, "route", |numbers| route(numbers.iter().sum()).to_owned());
    on_numbers(engine, "totals", |numbers| json(&Totals::of(range(numbers))));
    engine.handle("merge", |context: Context| {
        let parts = serde_json::from_slice::<Vec<Totals>>(context.payload());
        std::future::ready(parts.map_err(refused).map(|parts| json(&Totals::merged(&parts))))
    });
}

fn on_numbers(engine: &Engine, kind: &str, compute: impl Fn(&[u64]) -> String + Send + Sync + 'static) {
    engine.handle(kind, move |context: Context| {
        let numbers = serde_json::from_slice::<Vec<u64>>(context.payload());
        std::future::ready(numbers.map_err(refused).map(|numbers| compute(&numbers)))
    });
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn refused(error: serde_json::Error) -> Failure {
    Failure::permanent(error.to_string())
}

/// Returns the approval of an amount, as JSON.
fn route(amount: u64) -> &'static str {
    match amount {
        0..100 => "\"auto\"",
        100..1000 => "\"manager\"",
        _ => "\"both\"",
    }
}

fn range(numbers: &[u64]) -> Range<u64> {
    numbers.first().copied().unwrap_or(0)..numbers.last().copied().unwrap_or(0)
}

fn json(totals: &Totals) -> String {
    serde_json::to_string(totals).unwrap_or_default()
}

/// The figures of some rows of a product list.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// The sum of price times stock.
    value: u64,
    /// The number of products of each category.
    categories: [u64; 5],
    most_expensive: u64,
    /// The sum of the ratings, and their number.
    ratings: (u64, u64),
}

impl Totals {
    /// Computes the figures of rows of the list.
    pub(crate) fn of(rows: Range<u64>) -> Self {
        rows.fold(Self::default(), |totals, row| totals.with(&csv_row(row)))
    }

    /// Adds a row: category, price, stock, rating.
    fn with(mut self, row: &str) -> Self {
        let mut fields = row.split(',').map(|field| field.parse::<u64>().unwrap_or(0));
        let mut next = || fields.next().unwrap_or(0);
        let (category, price, stock, rating) = (next(), next(), next(), next());
        self.value += price * stock;
        self.categories[category as usize % 5] += 1;
        self.most_expensive = self.most_expensive.max(price);
        self.ratings = (self.ratings.0 + rating, self.ratings.1 + 1);
        self
    }

    fn merged(parts: &[Self]) -> Self {
        parts.iter().fold(Self::default(), |mut all, part| {
            all.value += part.value;
            all.categories.iter_mut().zip(part.categories).for_each(|(count, more)| *count += more);
            all.most_expensive = all.most_expensive.max(part.most_expensive);
            all.ratings = (all.ratings.0 + part.ratings.0, all.ratings.1 + part.ratings.1);
            all
        })
    }
}

/// Returns a row of the product list. The numbers are arbitrary, and the same in every run.
fn csv_row(row: u64) -> String {
    format!("{},{},{},{}", row % 5, 100 + row * 7919 % 9973, row * 31 % 50, 1 + row * 13 % 5)
}
