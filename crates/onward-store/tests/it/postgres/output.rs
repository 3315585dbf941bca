//! The output of tasks, which is stored as rows.

use onward_store::OutputStream::Stdout;
use onward_store::{
    Claim, Durability, NewTask, OpenSession, Outcome, OutputPiece, PostgresStore, Store, StoreReads, Write,
};
use onward_testkit::postgres::Server;
use std::time::Duration;

use super::trouble::connect;

async fn applied(store: &PostgresStore, write: Write) -> Outcome {
    store.apply(vec![write]).await.unwrap().remove(0)
}

#[tokio::test]
async fn output_that_is_the_result_is_stored_once() {
    let Some(server) = Server::with_settings(&[]) else { return };
    let store = PostgresStore::options().durability(Durability::Normal).open(&server.url()).await.unwrap();
    applied(&store, Write::Submit(Box::new(NewTask::new("list").unwrap()))).await;
    let open = OpenSession::new("worker", Duration::from_secs(60));
    let Outcome::SessionOpened(session) = applied(&store, Write::OpenSession(open)).await else { panic!("no session") };
    let Outcome::Claimed(claimed) = applied(&store, Write::Claim(Claim::any(session, 1))).await else { panic!("none") };
    let lease = claimed.tasks[0].lease;
    let result = "x".repeat(50_000);
    let half = OutputPiece::new(Stdout, 0, result.as_bytes()[..25_000].to_vec());
    assert_eq!(applied(&store, Write::AppendOutput { lease, piece: half }).await, Outcome::Done);
    let client = connect(&server.url()).await;
    let kept = async || -> i64 {
        let sum = "SELECT coalesce(sum(octet_length(bytes)), 0) FROM onward.output_piece";
        client.query_one(sum, &[]).await.unwrap().get(0)
    };
    assert_eq!(kept().await, 25_000);
    let piece = OutputPiece::of_result(Stdout, 50_000);
    let complete = Write::Complete { lease, result: Some(result.clone().into()) };
    applied(&store, Write::All(vec![Write::AppendOutput { lease, piece }, complete])).await;
    assert_eq!(kept().await, 0);
    let output = store.task_output(lease.task, Stdout, 0, usize::MAX).await.unwrap().unwrap();
    assert!(output.pieces[0].bytes == result.as_bytes() && output.cut == 0);
}
