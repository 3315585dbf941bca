//! The transports tcp, ipc and inproc.

use std::os::unix::net::UnixListener;

use futures_util::FutureExt as _;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::Endpoint;
use onward_zmtp::{DealerSocket, PairSocket, PubSocket, PullSocket, PushSocket, RouterSocket, SubSocket, XpubSocket};

use crate::socket::support::events::{disconnected, failed, no_tasks, peers, within};

async fn talk(endpoint: &str) {
    let mut server = PairSocket::new();
    let bound = server.bind(endpoint).await.unwrap();
    let mut client = PairSocket::new();
    client.connect(&bound).unwrap();
    for frames in [vec!["one"], vec!["", "two", ""]] {
        within(client.send(Message::from_iter(frames.clone()))).await.unwrap();
        assert_eq!(within(server.recv()).await.unwrap().frames(), frames);
        within(server.send(Message::from_iter(frames.clone()))).await.unwrap();
        assert_eq!(within(client.recv()).await.unwrap().frames(), frames);
    }
    drop((server, client));
    no_tasks().await;
}

/// Shows: M3
#[tokio::test]
async fn tcp_works_with_addresses_names_and_both_versions() {
    for endpoint in ["tcp://127.0.0.1:*", "tcp://[::1]:*", "tcp://localhost:*", "tcp://127.0.0.1:0"] {
        talk(endpoint).await;
    }
}

/// Shows: M3
#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_bind_its_own_socket() {
    let task = tokio::spawn(async {
        let mut pull = PullSocket::new();
        let bound = pull.bind("tcp://127.0.0.1:*").await.unwrap();
        let mut push = PushSocket::new();
        push.connect(&bound).unwrap();
        push.send("within a task").await.unwrap();
        pull.recv().await.unwrap()
    });
    assert_eq!(within(task).await.unwrap().frames(), ["within a task"]);
}

/// Shows: M3
#[tokio::test]
async fn ipc_works_with_paths_and_abstract_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    talk(&format!("ipc://{}", path.display())).await;
    assert!(!path.exists(), "the file is left behind");
    talk("ipc://@onward-zmtp-transports").await;
}

/// Shows: M3
#[tokio::test]
async fn inproc_works_in_either_order() {
    talk("inproc://either").await;
    let mut client = PushSocket::new();
    client.connect("inproc://later").unwrap();
    client.send("early").await.unwrap();
    let mut server = PullSocket::new();
    server.bind("inproc://later").await.unwrap();
    assert_eq!(within(server.recv()).await.unwrap().frames(), ["early"]);
}

#[tokio::test]
async fn a_payload_is_not_copied_within_the_process() {
    let (mut push, mut pull) = (PushSocket::new(), PullSocket::new());
    push.connect(pull.bind("inproc://uncopied").await.unwrap()).unwrap();
    let payload = bytes::Bytes::from(vec![1; 1000]);
    push.send(payload.clone()).await.unwrap();
    let received = within(pull.recv()).await.unwrap();
    assert_eq!(received.frames()[0].as_ptr(), payload.as_ptr());
}

/// Shows: M3
#[tokio::test]
async fn subscriptions_and_identities_work_within_the_process() {
    let (mut publisher, mut sub) = (XpubSocket::new(), SubSocket::new());
    sub.connect(publisher.bind("inproc://topics").await.unwrap()).unwrap();
    sub.subscribe("a").unwrap();
    assert_eq!(within(publisher.recv()).await.unwrap().frames(), [&b"\x01a"[..]]);
    publisher.send("b").await.unwrap();
    publisher.send("a").await.unwrap();
    assert_eq!(within(sub.recv()).await.unwrap().frames(), ["a"]);
    let (mut router, mut dealer) = (RouterSocket::new(), DealerSocket::new());
    dealer.connect(router.bind("inproc://router").await.unwrap()).unwrap();
    dealer.send("hello").await.unwrap();
    let message = within(router.recv()).await.unwrap();
    assert_eq!(message.frames()[1], "hello");
    router.send(message).await.unwrap();
    assert_eq!(within(dealer.recv()).await.unwrap().frames(), ["hello"]);
}

/// Shows: M3
#[tokio::test]
async fn within_the_process_a_lost_server_is_found_again() {
    let (mut push, pull) = (PushSocket::new(), PullSocket::new());
    let mut monitor = push.monitor();
    push.connect(pull.bind("inproc://again").await.unwrap()).unwrap();
    peers(1, || push.statistics()).await;
    drop(pull);
    disconnected(&mut monitor).await;
    push.send("work").await.unwrap();
    let mut pull = PullSocket::new();
    within(async {
        while pull.bind("inproc://again").await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["work"]);
}

#[tokio::test]
async fn within_the_process_types_that_do_not_go_together_are_refused() {
    let (publisher, pull) = (PubSocket::new(), PullSocket::new());
    let mut monitor = pull.monitor();
    pull.connect(publisher.bind("inproc://strangers").await.unwrap()).unwrap();
    let reason = failed(&mut monitor).await;
    assert!(reason.protocol().is_some_and(onward_zmtp::protocol::Error::is_incompatible), "{reason:?}");
}

#[tokio::test]
async fn within_the_process_closing_hands_over_what_is_queued() {
    let (mut push, mut pull) = (PushSocket::new(), PullSocket::new());
    push.connect(pull.bind("inproc://closing").await.unwrap()).unwrap();
    for _ in 0..1500 {
        within(push.send("work")).await.unwrap();
    }
    let closing = tokio::spawn(push.close());
    for _ in 0..1500 {
        within(pull.recv()).await.unwrap();
    }
    assert_eq!(within(closing).await.unwrap(), 0);
}

#[tokio::test]
async fn a_file_without_a_listener_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stale");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    talk(&format!("ipc://{}", path.display())).await;
}

/// Each round tries to bind as often as possible while the other socket closes. Now and then the
/// two meet between the end of the listener and the removal of its file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_that_takes_the_place_of_one_that_is_about_to_go_keeps_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("place");
    let endpoint = format!("ipc://{}", path.display());
    for _ in 0..1000 {
        let before = PullSocket::new();
        before.bind(&endpoint).await.unwrap();
        let mut monitor = before.monitor();
        drop(before);
        let after = PullSocket::new();
        within(async { while after.bind(&endpoint).await.is_err() {} }).await;
        while within(monitor.next()).await.is_some() {}
        assert!(path.exists());
        after.close().await;
    }
}

#[tokio::test]
async fn a_file_with_a_listener_and_one_that_is_no_socket_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("taken");
    let listener = UnixListener::bind(&path).unwrap();
    let pull = PullSocket::new();
    let endpoint = format!("ipc://{}", path.display());
    assert!(pull.bind(endpoint.as_str()).await.unwrap_err().is_io());
    drop(listener);
    let file = directory.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(pull.bind(format!("ipc://{}", file.display()).as_str()).await.is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

#[tokio::test]
async fn a_socket_is_bound_and_connected_to_many_endpoints() {
    let mut pull = PullSocket::new();
    let endpoints = [
        pull.bind("tcp://127.0.0.1:*").await.unwrap(),
        pull.bind("ipc://@onward-zmtp-many").await.unwrap(),
        pull.bind("inproc://many").await.unwrap(),
    ];
    let mut push = PushSocket::new();
    for (index, endpoint) in endpoints.iter().enumerate() {
        push.connect(endpoint).unwrap();
        peers(index + 1, || push.statistics()).await;
    }
    for _ in 0..6 {
        push.send("work").await.unwrap();
        within(pull.recv()).await.unwrap();
    }
    assert_eq!(pull.statistics().peers, 3);
}

/// Shows: M3
#[tokio::test]
async fn a_bind_that_is_cancelled_has_bound_nothing() {
    let pull = PullSocket::new();
    let mut monitor = pull.monitor();
    // Binding waits for the address of the name.
    assert!(pull.bind("tcp://localhost:*").now_or_never().is_none());
    no_tasks().await;
    assert!(monitor.try_next().is_none());
}

#[tokio::test]
async fn an_address_that_is_taken_is_an_error() {
    let pull = PullSocket::new();
    for endpoint in ["tcp://127.0.0.1:*", "inproc://taken", "ipc://@onward-zmtp-taken"] {
        let bound = pull.bind(endpoint).await.unwrap();
        assert!(PullSocket::new().bind(&bound).await.is_err(), "{bound}");
    }
}

#[test]
fn an_endpoint_is_written_as_it_is_read() {
    for text in
        ["tcp://127.0.0.1:5555", "tcp://[::1]:5555", "tcp://host.name:1", "ipc:///tmp/x", "ipc://@name", "inproc://x y"]
    {
        assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
    }
}

#[test]
fn what_is_no_endpoint_is_refused_with_the_text_in_the_error() {
    let long = format!("ipc://{}", "x".repeat(200));
    for text in [
        "",
        "tcp",
        "tcp://",
        "tcp://host",
        "tcp://host:port",
        "tcp://:1",
        "tcp://host:65536",
        "tcp://host:+80",
        "udp://x:1",
        "ipc://",
        "ipc://@",
        "inproc://",
        "tcp://a;b:1",
        &long,
    ] {
        let error = text.parse::<Endpoint>().unwrap_err();
        assert!(error.is_endpoint() && error.to_string().contains(text.split("://").next().unwrap()), "{error}");
    }
}

#[tokio::test]
async fn an_endpoint_that_can_only_be_bound_to_is_not_connected_to() {
    let pull = PullSocket::new();
    for endpoint in ["tcp://*:5555", "tcp://127.0.0.1:*"] {
        assert!(pull.connect(endpoint).unwrap_err().is_endpoint());
    }
}

/// Returns a message of one, two or three frames. The frames have one size in some stretches and
/// several sizes in others.
fn frames_of_some_size(number: usize) -> Message {
    const SIZES: [usize; 9] = [0, 255, 256, 2047, 2048, 4096, 8191, 8192, 70_000];
    let size = |frame: usize| SIZES[(number / 150 + frame * number) % SIZES.len()];
    Message::from_iter((0..1 + number % 3).map(|frame| vec![(number + frame) as u8; size(frame)]))
}

/// The way of a payload into the stream depends on its size, and on its neighbours.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread")]
async fn frames_of_all_sizes_arrive_whole_and_in_order_over_streams() {
    let directory = tempfile::tempdir().unwrap();
    for endpoint in ["tcp://127.0.0.1:*".to_owned(), format!("ipc://{}", directory.path().join("sizes").display())] {
        let (mut push, mut pull) = (PushSocket::new(), PullSocket::new());
        push.connect(pull.bind(&endpoint).await.unwrap()).unwrap();
        let sending = tokio::spawn(async move {
            for number in 0..3000 {
                push.send(frames_of_some_size(number)).await.unwrap();
            }
            push
        });
        for number in 0..3000 {
            let received = within(pull.recv()).await.unwrap();
            assert!(received == frames_of_some_size(number), "message {number} over {endpoint}");
        }
        within(sending).await.unwrap();
    }
}
