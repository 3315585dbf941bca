//! An issuer of tokens that can misbehave: an HTTP server with keys of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use onward_server::http::IssuerOptions;
use onward_store::{Clock as _, ManualClock};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The audience of the tokens, and the id of the client.
pub(crate) const CLIENT: &str = "onward";

/// The secret of the client.
pub(crate) const SECRET: &str = "the secret: of the client";

/// A private key of 2048 bits for these tests, in DER (PKCS #1).
const RSA: &str = "\
    MIIEowIBAAKCAQEAwY+mL6Yikx3TRNT3odsYnEM4SJZ23edjPhg3ci5SO1ZPVmULa1vyHCb59aAd5h+hffDeQdKaLT\
    2UNZnGJHJ7z084/FwkBvD2+uPMsW0apHA77493zmZ/VgaEbGPFeRPAqIB25t6RwoQ3e5aXwoXX8q0SJfuLkBbeFN91\
    HXI/Y2DDwtIuq2TOtv74fZf4J9zcpVnuMc7hGyFzkprXDSqXF1jgGlcMd/hm4pEOwAdYuQi9blmIiIG29FIn1DzRqt\
    8ShBvlXt/Qcy+TGZCaM2jnWH5RSegVwg7h4HHaAg4LaCMF8/9pX1Kp5i/lR6axRJ2VZxi0iKM7PYY6vPT3SlGdWQID\
    AQABAoIBADG2EnDXYrbU6J8bcRPlIL91Nh3SYunf1OmsL4VIJz9tDcg7AEFM5nPbgMPYIQWqpv+g3nwaOhWXZJqViU\
    FwE6MtDg4mHeyYc14BJl+FDVwhJQuEFblxMo/l8Zmi0CMl8wtzntXxYI8MBPHdPdGsLUd6spgFsBTMArJqp3nuDyCW\
    1aLOO6iWDxMKWcIz/2Ff6e88/L6pAKRGZrrW5qMZSxGsSr5+dxAKjnFyucMTlDQxnAI7fu9sWSWWGgO7lolB3ov+F+\
    Yb7Dkz2riSv4k7VmOc4UvfGx4oxpKIavI4KMAxKS/cTi6Ty1HbID7QzBqDFCiftCdsZtavr4ELFLMbXOcCgYEA4yTf\
    SlNbJ0bh4iiKe/OJqg3qeoLGZT+fAY8iSYu/pHukYLsSrn6u1s0/hQnPVn6jjnAOmSOiwHBHT13C6S34exIDlgaDY4\
    nQ2Mit0zqaMCVt31b1Rzpo63n5h1icR7L4aZdgcULItimDVIt1bgImolMLZHO7nYD7F3L9GwAXci8CgYEA2iaZ6p7f\
    fZwvPD3FQO1QifIISw6D3e6kfe8oElagbfsxYng3Fpha2znjKpv8FCYAhgRv8+PCmJUajjZQI3kVpyq4zZTh9eEpzL\
    SXu0S4bJUAkVSE9p5IIY9zzlQxb5+xHlevgkrSbWN2j+4Obxya8L2WcCoRamsFEfRCzVAyLvcCgYBb3evZWcFCL27o\
    U1E/NI53Es3E4uNuy755mPRbHoRR+BfRb5fsrxvzkGuiWQdcijeIQlYFJd6LSl3tAZT1TjxzOiPtJ5E4TuMC6pczGT\
    6HPnwjmj31ovAQXPLJBNOgRAgoXKsK4+HdmwicxxKlfYU2nbO72vsEhsgHAeDQbMcOzQKBgQCdpvvgxMP6wN6aCIH+\
    9AIaTuGTbH/76TTTFfy9lAEIulnsMbiOCbjPabwz1NqNrRD/yUEm3liJcGfqknHD0QPG9Wbsm0XZLcnJeFGXMoidX+\
    kzHgOhPq4eIs+sMsgvRRb5OKFL5crA5vqN9ZpUzjVi+YA4uw4u+/yEByQnwGcj7QKBgHq4n9gsa28q/S5bOoBgXxKH\
    IIYWsPp/Fl2WeTyZi9pVdo1gmF8yWp6m5crOxgo4gogTr1824SWIzw+qc+84/Kr0L6EmX0GVKYOWA26XGanVf8ZsNb\
    iJ5L/0OzqNDArS8XjvToE8svA+Zr90I8I2a4qSjb+tYArWAYDGOvCk4db0";

/// A key of the issuer.
#[derive(Debug)]
pub(crate) struct Signer {
    pub(crate) id: &'static str,
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl Signer {
    pub(crate) fn ed25519(id: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { id, pair: Pair::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()) }
    }

    pub(crate) fn p256(id: &'static str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self { id, pair: Pair::P256(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()) }
    }

    pub(crate) fn rsa(id: &'static str) -> Self {
        Self { id, pair: Pair::Rsa(RsaKeyPair::from_der(&STANDARD.decode(RSA).unwrap()).unwrap()) }
    }

    pub(crate) fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Ed25519(_) => "EdDSA",
            Pair::P256(_) => "ES256",
            Pair::Rsa(_) => "RS256",
        }
    }

    /// Returns the public key as the issuer publishes it.
    pub(crate) fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut key = match &self.pair {
            Pair::Ed25519(pair) => json!({"kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref())}),
            Pair::P256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..])})
            }
            Pair::Rsa(pair) => {
                let RsaPublicKeyComponents::<Vec<u8>> { n, e } = pair.public().into();
                json!({"kty": "RSA", "n": text(&n), "e": text(&e)})
            }
        };
        key["kid"] = json!(self.id);
        key["use"] = json!("sig");
        key
    }

    /// Returns a token of these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let signed = unsigned(&json!({"alg": self.algorithm(), "kid": self.id, "typ": "JWT"}), claims);
        let message = signed.as_bytes();
        let signature = match &self.pair {
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::P256(pair) => pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).unwrap();
                signature
            }
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Returns the signed part of a token.
pub(crate) fn unsigned(token_header: &Value, claims: &Value) -> String {
    let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", text(token_header), text(claims))
}

/// A way in which an issuer misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The claim of an ID token has another value.
    Claim(&'static str),
    /// The ID token is signed by a key that the issuer does not publish.
    UnknownKey,
    /// The ID token has no signature.
    Unsigned,
    /// The response of the path has another size, or never comes, or has the status 500.
    Huge(&'static str),
    Silent(&'static str),
    Failing(&'static str),
    /// The discovery document is of another issuer.
    OtherIssuer,
    /// The response of the token endpoint has no ID token.
    NoToken,
}

/// A sign-in that the issuer has accepted.
#[derive(Debug)]
struct Accepted {
    nonce: String,
    challenge: String,
    redirect: String,
}

/// The state of an issuer, which tests change.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) keys: Vec<Signer>,
    pub(crate) fault: Option<Fault>,
    /// The number of readings of the keys.
    pub(crate) readings: usize,
    /// The claims of the person who signs in, besides those of every token.
    pub(crate) person: Value,
    codes: HashMap<String, Accepted>,
}

/// An issuer on a port of its own.
pub(crate) struct Provider {
    pub(crate) url: String,
    clock: Arc<ManualClock>,
    state: Arc<Mutex<State>>,
    served: JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.served.abort();
    }
}

impl Provider {
    pub(crate) async fn start(clock: &Arc<ManualClock>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let person = json!({"sub": "ada-1", "preferred_username": "ada", "groups": ["ops"]});
        let keys = vec![Signer::p256("first")];
        let state = State { keys, fault: None, readings: 0, person, codes: HashMap::new() };
        let state = Arc::new(Mutex::new(state));
        let (own, issuer, times) = (Arc::clone(&state), url.clone(), Arc::clone(clock));
        let router = Router::new().fallback(move |request: Request<Body>| {
            let (state, issuer, clock) = (Arc::clone(&own), issuer.clone(), Arc::clone(&times));
            async move { respond(&state, &issuer, &clock, request).await }
        });
        let served = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, clock: Arc::clone(clock), state, served }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns options that accept the bearer tokens of the issuer, with a group for each role.
    pub(crate) fn options(&self) -> IssuerOptions {
        let mut options = IssuerOptions::new(&self.url);
        options.audiences = vec![CLIENT.to_owned()];
        let roles = ["readers=viewer", "ops=operator", "devs=developer", "admins=admin"];
        options.roles = roles.map(|role| role.parse().unwrap()).to_vec();
        options
    }

    /// Returns the claims of a token of a group.
    pub(crate) fn claims(&self, group: &str) -> Value {
        let now = seconds(&self.clock);
        json!({
            "iss": self.url, "sub": format!("program of {group}"), "aud": CLIENT, "groups": [group],
            "iat": now, "exp": now + 3600,
        })
    }

    /// Returns a token of a group, signed by the first key.
    pub(crate) fn token(&self, group: &str) -> String {
        let claims = self.claims(group);
        self.state().keys[0].sign(&claims)
    }
}

pub(crate) fn seconds(clock: &ManualClock) -> i64 {
    clock.now().as_microseconds() / 1_000_000
}

async fn respond(state: &Mutex<State>, issuer: &str, clock: &ManualClock, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let fault = state.lock().unwrap().fault;
    match fault {
        Some(Fault::Silent(silent)) if path == silent => std::future::pending().await,
        Some(Fault::Huge(huge)) if path == huge => return reply(200, "x".repeat(1024 * 1024)),
        Some(Fault::Failing(failing)) if path == failing => return reply(500, String::new()),
        _ => {}
    }
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 64 * 1024).await.unwrap();
    let mut state = state.lock().unwrap();
    match path.as_str() {
        "/.well-known/openid-configuration" => reply(200, discovery(issuer, fault).to_string()),
        "/keys" => {
            state.readings += 1;
            let keys: Vec<Value> = state.keys.iter().map(Signer::jwk).collect();
            reply(200, json!({ "keys": keys }).to_string())
        }
        "/authorize" => authorize(&mut state, issuer, parts.uri.query().unwrap_or_default()),
        "/token" => {
            let given = parts.headers.get(header::AUTHORIZATION).map(|it| it.to_str().unwrap());
            token(&mut state, issuer, clock, given, &form(&body))
        }
        _ => reply(404, String::new()),
    }
}

fn reply(status: u16, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

fn discovery(issuer: &str, fault: Option<Fault>) -> Value {
    let named = if fault == Some(Fault::OtherIssuer) { "https://other.example" } else { issuer };
    json!({
        "issuer": named, "jwks_uri": format!("{issuer}/keys"), "token_endpoint": format!("{issuer}/token"),
        "authorization_endpoint": format!("{issuer}/authorize"), "scopes_supported": ["openid"],
    })
}

fn form(text: &[u8]) -> HashMap<String, String> {
    form_urlencoded::parse(text).into_owned().collect()
}

/// Signs the person in without a question, and sends the browser back.
fn authorize(state: &mut State, issuer: &str, query: &str) -> Response<Body> {
    let query = form(query.as_bytes());
    assert_eq!((query["response_type"].as_str(), query["client_id"].as_str()), ("code", CLIENT));
    assert_eq!(query["code_challenge_method"], "S256");
    assert!(query["scope"].split(' ').any(|scope| scope == "openid"));
    let code = format!("code {}", state.codes.len());
    let redirect = query["redirect_uri"].clone();
    let accepted = Accepted {
        nonce: query["nonce"].clone(),
        challenge: query["code_challenge"].clone(),
        redirect: redirect.clone(),
    };
    state.codes.insert(code.clone(), accepted);
    let returned = form_urlencoded::Serializer::new(String::new())
        .append_pair("code", &code)
        .append_pair("state", &query["state"])
        .append_pair("iss", issuer)
        .append_pair("session_state", "something that this issuer adds")
        .finish();
    let mut response = reply(302, String::new());
    response.headers_mut().insert(header::LOCATION, format!("{redirect}?{returned}").parse().unwrap());
    response
}

/// Returns the ID token of a code, once.
fn token(
    state: &mut State,
    issuer: &str,
    clock: &ManualClock,
    credential: Option<&str>,
    form: &HashMap<String, String>,
) -> Response<Body> {
    let encoded: String = form_urlencoded::byte_serialize(SECRET.as_bytes()).collect();
    let expected = format!("Basic {}", STANDARD.encode(format!("{CLIENT}:{encoded}")));
    let Some(accepted) = state.codes.remove(&form["code"]) else { return reply(400, "{}".to_owned()) };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
    if credential != Some(expected.as_str())
        || accepted.challenge != challenge
        || accepted.redirect != form["redirect_uri"]
        || form["grant_type"] != "authorization_code"
    {
        return reply(401, "{}".to_owned());
    }
    let now = seconds(clock);
    let mut claims = json!({"iss": issuer, "aud": CLIENT, "nonce": accepted.nonce, "iat": now, "exp": now + 300});
    for (name, value) in state.person.as_object().unwrap() {
        claims[name] = value.clone();
    }
    if let Some(Fault::Claim(name)) = state.fault {
        claims[name] = if name == "exp" { json!(now - 3600) } else { json!("another") };
    }
    let id_token = match state.fault {
        Some(Fault::UnknownKey) => Signer::p256("unknown").sign(&claims),
        Some(Fault::Unsigned) => format!("{}.", unsigned(&json!({"alg": "none"}), &claims)),
        _ => state.keys[0].sign(&claims),
    };
    match state.fault {
        Some(Fault::NoToken) => reply(200, json!({"access_token": "a"}).to_string()),
        _ => reply(200, json!({"access_token": "a", "token_type": "Bearer", "id_token": id_token}).to_string()),
    }
}
