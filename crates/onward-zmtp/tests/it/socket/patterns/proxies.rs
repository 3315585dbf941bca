//! Proxies, each of which joins two sockets.

use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{HighWaterMark, MonitorEvent, Overflow, Proxy, SocketOptions};
use onward_zmtp::{
    DealerSocket, PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, SubSocket, XpubSocket,
    XsubSocket,
};

use crate::socket::support::events::{event, until, within};

/// Shows: M3
#[tokio::test]
async fn a_broker_carries_requests_and_replies() {
    let (mut front, mut back) = (RouterSocket::new(), DealerSocket::new());
    let (clients, workers) =
        (front.bind("tcp://127.0.0.1:*").await.unwrap(), back.bind("tcp://127.0.0.1:*").await.unwrap());
    let broker = tokio::spawn(async move { Proxy::new(&mut front, &mut back).run().await });
    for _ in 0..2 {
        let mut rep = RepSocket::new();
        rep.connect(&workers).unwrap();
        tokio::spawn(async move {
            loop {
                let request = rep.recv().await.unwrap();
                rep.send(request).await.unwrap();
            }
        });
    }
    let mut reqs = [ReqSocket::new(), ReqSocket::new(), ReqSocket::new()];
    for round in 0..10_u8 {
        for (index, req) in reqs.iter_mut().enumerate() {
            if round == 0 {
                req.connect(&clients).unwrap();
            }
            within(req.send(vec![round, index as u8])).await.unwrap();
        }
        for (index, req) in reqs.iter_mut().enumerate() {
            assert_eq!(within(req.recv()).await.unwrap().frames()[0][..], [round, index as u8]);
        }
    }
    broker.abort();
}

/// Shows: M3
#[tokio::test]
async fn a_forwarder_carries_subscriptions_one_way_and_publications_the_other() {
    let mut publisher = XpubSocket::new();
    let (mut front, mut back) = (XsubSocket::new(), XpubSocket::new());
    front.connect(publisher.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    let endpoint = back.bind("tcp://127.0.0.1:*").await.unwrap();
    let forwarder = tokio::spawn(async move { Proxy::new(&mut front, &mut back).run().await });
    let mut sub = SubSocket::new();
    sub.subscribe("a").unwrap();
    sub.connect(&endpoint).unwrap();
    assert_eq!(within(publisher.recv()).await.unwrap().frames(), [&b"\x01a"[..]]);
    publisher.send("b").await.unwrap();
    publisher.send(Message::from_iter(["a", "body"])).await.unwrap();
    assert_eq!(within(sub.recv()).await.unwrap().frames(), ["a", "body"]);
    drop(sub);
    assert_eq!(within(publisher.recv()).await.unwrap().frames(), [&b"\x00a"[..]]);
    forwarder.abort();
}

/// Shows: M3
#[tokio::test]
async fn a_capture_sees_what_passes() {
    let (mut front, mut back) = (PullSocket::new(), PushSocket::new());
    let (mut push, mut pull) = (PushSocket::new(), PullSocket::new());
    let (mut copies, mut watch) = (PushSocket::new(), PullSocket::new());
    copies.connect(watch.bind("inproc://capture").await.unwrap()).unwrap();
    push.connect(front.bind("inproc://front").await.unwrap()).unwrap();
    pull.connect(back.bind("inproc://back").await.unwrap()).unwrap();
    let streamer = tokio::spawn(async move {
        let capture = |message: &Message| drop(copies.try_send(message.clone()));
        Proxy::new(&mut front, &mut back).capture(capture).run().await
    });
    for work in ["one", "two"] {
        within(push.send(work)).await.unwrap();
        assert_eq!(within(pull.recv()).await.unwrap().frames(), [work]);
        assert_eq!(within(watch.recv()).await.unwrap().frames(), [work]);
    }
    streamer.abort();
}

/// Shows: M3
#[tokio::test]
async fn a_capture_sees_requests_and_replies() {
    let (mut front, mut back) = (RouterSocket::new(), DealerSocket::new());
    let (mut req, mut rep) = (ReqSocket::new(), RepSocket::new());
    req.connect(front.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    rep.connect(back.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    let (copies, mut captured) = tokio::sync::mpsc::unbounded_channel();
    let broker = tokio::spawn(async move {
        let capture = move |message: &Message| drop(copies.send(message.clone()));
        Proxy::new(&mut front, &mut back).capture(capture).run().await
    });
    for round in 0..3_u8 {
        within(req.send(vec![b'q', round])).await.unwrap();
        assert_eq!(within(rep.recv()).await.unwrap().frames(), [vec![b'q', round]]);
        within(rep.send(vec![b'a', round])).await.unwrap();
        assert_eq!(within(req.recv()).await.unwrap().frames(), [vec![b'a', round]]);
        let (request, reply) = (within(captured.recv()).await.unwrap(), within(captured.recv()).await.unwrap());
        assert_eq!(request.frames()[1..], [vec![], vec![b'q', round]]);
        // The identity of the requesting peer is in front, then the delimiter.
        assert_eq!(reply.frames(), [request.frames()[0].clone(), vec![].into(), vec![b'a', round].into()]);
        assert!(captured.try_recv().is_err(), "each is seen once");
    }
    broker.abort();
}

/// Shows: M3
#[tokio::test]
async fn a_backend_that_is_full_is_felt_at_the_frontend() {
    let few = SocketOptions::new()
        .send_high_water_mark(HighWaterMark::messages(5))
        .receive_high_water_mark(HighWaterMark::messages(5));
    let (mut front, mut back) = (PullSocket::with_options(few.clone()), PushSocket::with_options(few.clone()));
    let mut push = PushSocket::with_options(few);
    push.connect(front.bind("inproc://felt-front").await.unwrap()).unwrap();
    back.bind("inproc://felt-back").await.unwrap();
    let mut proxy = Proxy::new(&mut front, &mut back);
    let mut sent = 0;
    let running = async {
        while tokio::time::timeout(std::time::Duration::from_millis(500), push.send("work")).await.is_ok() {
            sent += 1;
        }
    };
    tokio::select! {
        _ = proxy.run() => panic!("the proxy ended"),
        () = running => {}
    }
    assert!((10..30).contains(&sent), "{sent} were taken");
    drop(proxy);
    until(|| front.statistics().incoming.messages <= 5).await;
}

/// Without the error, the proxy would wait for ever.
///
/// Shows: M3
#[tokio::test]
async fn a_proxy_between_sockets_that_have_nothing_to_say_to_each_other_is_an_error() {
    let error = within(Proxy::new(&mut PushSocket::new(), &mut PushSocket::new()).run()).await.unwrap_err();
    assert!(error.is_misuse() && error.to_string().contains("PUSH"), "{error}");
    assert!(within(Proxy::new(&mut PullSocket::new(), &mut PullSocket::new()).run()).await.unwrap_err().is_misuse());
    assert!(within(Proxy::new(&mut RepSocket::new(), &mut ReqSocket::new()).run()).await.unwrap_err().is_misuse());
}

/// Otherwise the proxy takes all work from the frontend and drops it, without an error.
///
/// Shows: M3
#[tokio::test]
async fn a_proxy_whose_backend_is_refused_ends_and_leaves_the_messages_to_the_frontend() {
    let (mut front, mut back) = (PullSocket::new(), PushSocket::new());
    let (mut push, stranger) = (PushSocket::new(), PubSocket::new());
    push.connect(front.bind("inproc://refused-front").await.unwrap()).unwrap();
    let mut monitor = back.monitor();
    back.connect(stranger.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    event(&mut monitor, |event| matches!(event, MonitorEvent::ConnectingEnded { .. }).then_some(())).await;
    for work in ["one", "two"] {
        within(push.send(work)).await.unwrap();
    }
    let error = within(Proxy::new(&mut front, &mut back).run()).await.unwrap_err();
    assert!(error.is_refused(), "{error}");
    for work in ["one", "two"] {
        assert_eq!(within(front.recv()).await.unwrap().frames(), [work]);
    }
    assert_eq!(back.statistics().dropped, 0);
}

/// Shows: M3
#[tokio::test]
async fn a_message_that_a_dropped_proxy_has_taken_is_counted() {
    let (mut front, mut back) = (PullSocket::new(), PushSocket::new());
    let mut push = PushSocket::new();
    push.connect(front.bind("inproc://counted-front").await.unwrap()).unwrap();
    back.bind("inproc://counted-back").await.unwrap();
    within(push.send("work")).await.unwrap();
    let (taken, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let mut proxy = Proxy::new(&mut front, &mut back).capture(move |message| drop(taken.send(message.clone())));
    tokio::select! {
        _ = proxy.run() => panic!("the proxy ended"),
        message = seen.recv() => assert_eq!(message.unwrap().frames(), ["work"]),
    }
    drop(proxy);
    assert_eq!(back.statistics().dropped, 1);
}

const REQUESTS: usize = 200;

/// Returns a ROUTER and a DEALER for a broker, and a worker and a client, all with short queues.
async fn short_broker(name: &str) -> (RouterSocket, DealerSocket, RepSocket, DealerSocket) {
    let few = SocketOptions::new()
        .send_high_water_mark(HighWaterMark::messages(5))
        .receive_high_water_mark(HighWaterMark::messages(5));
    let (front, back) = (RouterSocket::with_options(few.clone()), DealerSocket::with_options(few.clone()));
    let (worker, client) = (RepSocket::with_options(few.clone()), DealerSocket::with_options(few));
    client.connect(front.bind(format!("inproc://{name}-front")).await.unwrap()).unwrap();
    worker.connect(back.bind(format!("inproc://{name}-back")).await.unwrap()).unwrap();
    (front, back, worker, client)
}

async fn send_requests(client: &mut DealerSocket) {
    for _ in 0..REQUESTS {
        within(client.send(Message::from_iter(["", "request"]))).await.unwrap();
    }
}

async fn echo(worker: &mut RepSocket, requests: usize) {
    for _ in 0..requests {
        let request = within(worker.recv()).await.unwrap();
        within(worker.send(request)).await.unwrap();
    }
}

/// Shows: M3
#[tokio::test]
async fn a_client_of_a_broker_that_never_reads_stops_no_other_client() {
    let (mut front, mut back, mut worker, mut deaf) = short_broker("deaf").await;
    let mut req = ReqSocket::new();
    req.connect("inproc://deaf-front").unwrap();
    let mut proxy = Proxy::new(&mut front, &mut back);
    let exchange = async {
        tokio::join!(send_requests(&mut deaf), echo(&mut worker, REQUESTS));
        within(req.send("hello")).await.unwrap();
        echo(&mut worker, 1).await;
        assert_eq!(within(req.recv()).await.unwrap().frames(), ["hello"]);
    };
    tokio::select! {
        _ = proxy.run() => panic!("the proxy ended"),
        () = exchange => {}
    }
    drop(proxy);
    let dropped = front.statistics().dropped as usize;
    for _ in dropped..REQUESTS {
        assert_eq!(within(deaf.recv()).await.unwrap().frames(), ["", "request"]);
    }
    assert!(dropped > 0 && deaf.try_recv().is_none(), "{dropped} were dropped");
}

/// Shows: M3
#[tokio::test]
async fn a_broker_that_waits_for_its_clients_loses_no_reply() {
    let (mut front, mut back, mut worker, client) = short_broker("patient").await;
    let mut proxy = Proxy::new(&mut front, &mut back).overflow(Overflow::Wait);
    let (mut requests, mut replies) = client.split();
    let exchange = async {
        let send = async {
            for _ in 0..REQUESTS {
                within(requests.send(Message::from_iter(["", "request"]))).await.unwrap();
            }
        };
        let read = async {
            for _ in 0..REQUESTS {
                assert_eq!(within(replies.recv()).await.unwrap().frames(), ["", "request"]);
            }
        };
        tokio::join!(send, read, echo(&mut worker, REQUESTS));
    };
    tokio::select! {
        _ = proxy.run() => panic!("the proxy ended"),
        () = exchange => {}
    }
    drop(proxy);
    assert_eq!(front.statistics().dropped, 0);
}
