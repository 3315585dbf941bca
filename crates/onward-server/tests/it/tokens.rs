//! Bearer tokens of an issuer.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use onward_server::http::{Algorithm, Role, RouteInfo, ServerOptions, bounds, routes};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::api::Api;
use crate::client::{Request, Response};
use crate::provider::{CLIENT, Fault, Provider, Signer, seconds, unsigned};

on_every_store! {
    every_route_refuses_each_token_that_is_not_enough,
    each_allowed_algorithm_is_accepted,
    a_new_key_is_read_when_a_token_names_it,
    invented_keys_cause_no_further_readings,
    an_issuer_that_is_away_counts_for_a_while,
    documents_out_of_their_bounds_are_refused,
    a_token_without_a_role_is_refused,
    a_change_by_token_is_recorded_with_its_subject,
    a_token_opens_no_session,
    a_server_without_an_audience_accepts_no_token,
    the_refusal_of_a_token_names_its_reason,
}

/// Starts an issuer, and a server that accepts its tokens.
async fn start(api: &Api) -> (Provider, Api) {
    let provider = Provider::start(&api.clock).await;
    let server = start_for(api, &provider).await;
    (provider, server)
}

async fn start_for(api: &Api, provider: &Provider) -> Api {
    let mut options = ServerOptions::default();
    options.issuer = Some(provider.options());
    api.another(options).await
}

async fn queues(api: &Api, token: &str) -> Response {
    api.send(Request::new("GET", "/v1/queues").key(token)).await
}

fn group(role: Role) -> &'static str {
    match role {
        Role::Viewer => "readers",
        Role::Operator => "ops",
        Role::Developer => "devs",
        Role::Admin => "admins",
    }
}

/// Returns a request of a route, with something for each parameter of its path.
fn request(route: &RouteInfo) -> Request {
    let path = route.path.replace("{id}", "1").replace("{scope}", "all").replace(['{', '}'], "");
    Request::new(route.method.as_str(), &path)
}

/// Returns tokens of an admin that are not right, by their fault.
fn wrong_tokens(api: &Api, provider: &Provider) -> Vec<(&'static str, String)> {
    let claims = provider.claims("admins");
    let changed = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        provider.state().keys[0].sign(&claims)
    };
    let now = seconds(&api.clock);
    let right = provider.token("admins");
    let (signed, _) = right.rsplit_once('.').unwrap();
    let (_, other) = Signer::p256("first").sign(&claims).rsplit_once('.').map(|(_, it)| ((), it.to_owned())).unwrap();
    // An attacker knows the public key, so it must not count as the secret of an HMAC.
    let secret = provider.state().keys[0].jwk().to_string();
    let shared = unsigned(&json!({"alg": "HS256", "kid": "first"}), &claims);
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(shared.as_bytes());
    let shared = format!("{shared}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
    vec![
        ("wrong signature", format!("{signed}.{other}")),
        ("expired", changed("exp", json!(now - 3600))),
        ("early", changed("nbf", json!(now + 3600))),
        ("wrong audience", changed("aud", json!("another"))),
        ("wrong issuer", changed("iss", json!("https://other.example"))),
        ("none", format!("{}.", unsigned(&json!({"alg": "none"}), &claims))),
        ("shared secret", shared),
        ("other claims", {
            let (_, signature) = right.rsplit_once('.').unwrap();
            let mut more = claims.clone();
            more["sub"] = json!("root");
            format!("{}.{signature}", unsigned(&json!({"alg": "ES256", "kid": "first", "typ": "JWT"}), &more))
        }),
    ]
}

/// Shows: W8
async fn every_route_refuses_each_token_that_is_not_enough(api: Api) {
    let (provider, api) = start(&api).await;
    let wrong = wrong_tokens(&api, &provider);
    let tokens: Vec<_> = Role::ALL.into_iter().map(|role| (role, provider.token(group(role)))).collect();
    for route in routes().iter().filter(|route| route.role.is_some()) {
        for (fault, token) in &wrong {
            let response = api.send(request(route).key(token)).await;
            assert_eq!(response.status, 401, "{route:?} {fault}: {}", response.text());
            response.expect_problem(401, "credential_invalid");
        }
        let needed = route.role.unwrap();
        for (role, token) in &tokens {
            if *role < needed {
                api.send(request(route).key(token)).await.expect_problem(403, "forbidden");
            } else if route.path != "/v1/changes" {
                let response = api.send(request(route).key(token)).await;
                assert!(!matches!(response.status, 401 | 403 | 405 | 500..), "{route:?} {role}: {}", response.text());
            }
        }
    }
}

/// Shows: W8
async fn each_allowed_algorithm_is_accepted(api: Api) {
    let provider = Provider::start(&api.clock).await;
    provider.state().keys = vec![Signer::rsa("r"), Signer::p256("p"), Signer::ed25519("e")];
    let claims = provider.claims("ops");
    let tokens: Vec<_> = provider.state().keys.iter().map(|key| (key.algorithm(), key.sign(&claims))).collect();
    for allowed in [Algorithm::ALL.to_vec(), vec![Algorithm::Es256]] {
        let mut options = ServerOptions::default();
        let mut issuer = provider.options();
        issuer.algorithms.clone_from(&allowed);
        options.issuer = Some(issuer);
        let server = api.another(options).await;
        for (name, token) in &tokens {
            let expected = if allowed.iter().any(|it| it.as_str() == *name) { 200 } else { 401 };
            assert_eq!(queues(&server, token).await.status, expected, "{name} {allowed:?}");
        }
    }
}

/// Shows: W8
async fn a_new_key_is_read_when_a_token_names_it(api: Api) {
    let (provider, api) = start(&api).await;
    let before = provider.token("ops");
    queues(&api, &before).await.expect(200);
    provider.state().keys = vec![Signer::ed25519("second")];
    api.clock.advance(bounds::ISSUER_PAUSE);
    queues(&api, &provider.token("ops")).await.expect(200);
    // The key before is not published any more.
    queues(&api, &before).await.expect_problem(401, "credential_invalid");
    assert_eq!(provider.state().readings, 2);
}

async fn invented_keys_cause_no_further_readings(api: Api) {
    let (provider, api) = start(&api).await;
    let claims = provider.claims("admins");
    for id in ["a", "b", "c", "d"] {
        queues(&api, &Signer::p256(id).sign(&claims)).await.expect_problem(401, "credential_invalid");
    }
    queues(&api, &provider.token("ops")).await.expect(200);
    assert_eq!(provider.state().readings, 1);
}

async fn an_issuer_that_is_away_counts_for_a_while(api: Api) {
    let (provider, api) = start(&api).await;
    queues(&api, &provider.token("ops")).await.expect(200);
    provider.state().fault = Some(Fault::Failing("/keys"));
    api.clock.advance(bounds::ISSUER_STALE - Duration::from_secs(1));
    queues(&api, &provider.token("ops")).await.expect(200);
    api.clock.advance(bounds::ISSUER_PAUSE);
    let refused = queues(&api, &provider.token("ops")).await;
    assert_eq!(refused.header("retry-after"), Some("30"));
    refused.expect_problem(503, "issuer_unavailable");
    // Keys of this store do not need the issuer.
    queues(&api, api.key(Role::Viewer)).await.expect(200);
    provider.state().fault = None;
    api.clock.advance(bounds::ISSUER_PAUSE);
    queues(&api, &provider.token("ops")).await.expect(200);
}

async fn documents_out_of_their_bounds_are_refused(api: Api) {
    let discovery = "/.well-known/openid-configuration";
    for fault in [Fault::Huge("/keys"), Fault::Silent("/keys"), Fault::OtherIssuer, Fault::Huge(discovery)] {
        let provider = Provider::start(&api.clock).await;
        provider.state().fault = Some(fault);
        let mut options = ServerOptions::default();
        options.limits.request_time = Duration::from_secs(1);
        let mut issuer = provider.options();
        // A request ends with its own time, so that of the issuer is less.
        issuer.time = Duration::from_millis(200);
        options.issuer = Some(issuer);
        let server = api.another(options).await;
        let response = queues(&server, &provider.token("ops")).await;
        assert_eq!(response.status, 503, "{fault:?}: {}", response.text());
        response.expect_problem(503, "issuer_unavailable");
    }
}

async fn a_token_without_a_role_is_refused(api: Api) {
    let (provider, api) = start(&api).await;
    let refused = queues(&api, &provider.token("others")).await.expect_problem(403, "forbidden");
    assert!(refused["detail"].as_str().unwrap().contains("the claim `groups` of `program of others`"), "{refused}");
}

async fn a_change_by_token_is_recorded_with_its_subject(api: Api) {
    let (provider, api) = start(&api).await;
    api.submit("k").await;
    let token = provider.token("ops");
    api.send(Request::new("POST", "/v1/tasks/1/cancel").key(&token)).await.expect(200);
    let audit = api.get("/v1/audit").await.expect(200);
    assert_eq!(audit["items"][0]["key"], "subject:program of ops", "{audit}");
    assert!(!audit.to_string().contains(&token), "{audit}");
}

async fn a_token_opens_no_session(api: Api) {
    let (provider, api) = start(&api).await;
    let request = Request::new("POST", "/v1/sessions").key(&provider.token("admins"));
    api.send(request).await.expect_problem(409, "conflict");
}

async fn a_server_without_an_audience_accepts_no_token(api: Api) {
    let provider = Provider::start(&api.clock).await;
    queues(&api, &provider.token("admins")).await.expect_problem(401, "credential_invalid");
    let mut options = ServerOptions::default();
    let mut issuer = provider.options();
    issuer.audiences.clear();
    options.issuer = Some(issuer);
    assert!(options.check().unwrap_err().to_string().contains("neither an audience nor a client id"));
}

async fn the_refusal_of_a_token_names_its_reason(api: Api) {
    let (provider, api) = start(&api).await;
    let detail = async |token: &str| queues(&api, token).await.expect(401)["detail"].as_str().unwrap().to_owned();
    for (fault, token) in wrong_tokens(&api, &provider) {
        let expected = match fault {
            "expired" => "has expired",
            "early" => "not valid yet",
            "wrong audience" => "`aud`",
            "wrong issuer" => "`iss`",
            "none" | "shared secret" => "algorithm",
            _ => "no key of the issuer",
        };
        let detail = detail(&token).await;
        assert!(detail.contains(expected), "{fault}: {detail}");
    }
    let mut claims = provider.claims("ops");
    claims["aud"] = json!(["another", CLIENT]);
    let token = provider.state().keys[0].sign(&claims);
    queues(&api, &token).await.expect(200);
}
