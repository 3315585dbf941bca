//! Trusted proxies: the address of a client, and connections without TLS beyond loopback.

use std::net::{IpAddr, UdpSocket};

use onward_server::http::{Listener, ServerOptions};

use crate::api::Api;
use crate::client::Request;

on_every_store! {
    the_client_behind_a_trusted_proxy_is_recorded,
    no_other_client_chooses_its_address,
    beyond_loopback_only_proxies_connect_without_tls,
}

fn trusting(proxies: &[&str]) -> ServerOptions {
    let mut options = ServerOptions::default();
    options.proxies = proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
    options
}

/// Returns the address in the audit record of a change.
async fn recorded(api: &Api, forwarded: &str) -> String {
    let create = api.request("POST", "/v1/keys").header("x-forwarded-for", forwarded);
    api.send(create.json(&serde_json::json!({"name": "n", "role": "viewer"}))).await.expect(201);
    let audit = api.get("/v1/audit").await.expect(200);
    audit["items"][0]["address"].as_str().unwrap().to_owned()
}

async fn the_client_behind_a_trusted_proxy_is_recorded(api: Api) {
    let other = api.another(trusting(&["127.0.0.0/8", "10.0.0.0/8"])).await;
    assert_eq!(recorded(&other, "198.51.100.1, 203.0.113.9, 10.0.0.3").await, "203.0.113.9");
}

async fn no_other_client_chooses_its_address(api: Api) {
    let other = api.another(trusting(&["10.0.0.0/8"])).await;
    assert_eq!(recorded(&other, "203.0.113.9").await, "127.0.0.1");
}

/// Returns an address of this machine beyond loopback.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // A connection of UDP sends nothing.
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}

/// Shows: W8
async fn beyond_loopback_only_proxies_connect_without_tls(api: Api) {
    let Some(address) = own_address() else {
        println!("not tested: this machine has no address beyond loopback");
        return;
    };
    let on = async |options| {
        let listener = Listener::bind((address, 0).into()).await.unwrap();
        api.another_on(listener, options).await
    };
    let health = || Request::new("GET", "/v1/health/live");
    let closed = on(trusting(&["203.0.113.9"])).await;
    assert_eq!(closed.send(health()).await.status, 403);
    let open = on(trusting(&[&address.to_string()])).await;
    assert_eq!(open.send(health()).await.status, 200);
}
