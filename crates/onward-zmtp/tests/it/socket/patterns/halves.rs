//! The halves of a socket, and conversions into frames.

use onward_zmtp::protocol::{IntoFrame as _, Message};
use onward_zmtp::{PubSocket, PullSocket, PushSocket, RouterSocket, SubSocket, XsubSocket};

use crate::socket::support::events::{peers, within};

/// Shows: M3
#[tokio::test]
async fn a_half_of_a_socket_is_bound_and_connected_as_the_whole() {
    let (sender, mut receiver) = RouterSocket::new().split();
    let endpoint = receiver.bind("tcp://127.0.0.1:*").await.unwrap();
    let (mut asks, mut receives) = RouterSocket::new().split();
    assert!(asks.connect(&endpoint).unwrap() && !receives.connect(&endpoint).unwrap());
    peers(1, || sender.statistics()).await;
    let another = sender.bind("inproc://halves").await.unwrap();
    assert!(receives.connect(&another).unwrap());
    peers(2, || sender.statistics()).await;
    sender.unbind(&another).unwrap();
    receives.disconnect(&another).unwrap();
    asks.disconnect(&endpoint).unwrap();
    receiver.unbind(&endpoint).unwrap();
    peers(0, || sender.statistics()).await;
    assert!(asks.try_send(Message::from_iter(["nobody", "hello"])).is_err() && receiver.try_recv().is_none());
    assert!(receives.try_recv().is_none());
}

/// Shows: M3
#[tokio::test]
async fn a_half_that_receives_subscribes() {
    let mut publisher = PubSocket::new();
    let endpoint = publisher.bind("inproc://half-subscribes").await.unwrap();
    let (_sender, mut receiver) = XsubSocket::new().split();
    receiver.connect(&endpoint).unwrap();
    let topic = String::from("news");
    receiver.subscribe(topic.as_str()).unwrap();
    within(async {
        while receiver.try_recv().is_none() {
            publisher.send("news").await.unwrap();
            tokio::task::yield_now().await;
        }
    })
    .await;
    receiver.cancel("news");
}

/// Shows: M3
#[tokio::test]
async fn what_is_sent_need_not_be_static() {
    let (mut push, mut pull) = (PushSocket::new(), PullSocket::new());
    push.connect(pull.bind("inproc://borrowed").await.unwrap()).unwrap();
    let text = format!("{} words", 2);
    let octets = [b'o'; 3];
    push.send(text.as_str()).await.unwrap();
    push.send(&text).await.unwrap();
    push.send(&octets[1..]).await.unwrap();
    push.send(Message::from_iter([&text[..1], &text[2..]])).await.unwrap();
    push.send(*b"array").await.unwrap();
    push.send(std::borrow::Cow::from(text.as_str())).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["2 words"]);
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["2 words"]);
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["oo"]);
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["2", "words"]);
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["array"]);
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["2 words"]);
    SubSocket::new().subscribe(text.as_str()).unwrap();
}

#[test]
fn what_owns_its_octets_gives_them_away_uncopied() {
    let owned = vec![7; 1000];
    let address = owned.as_ptr();
    assert_eq!(owned.into_frame().as_ptr(), address);
}
