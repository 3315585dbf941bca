//! The sign-in of people at an issuer, by OpenID Connect.

use onward_server::http::{ClientSecret, Role, ServerOptions, SignInOptions, bounds};
use serde_json::json;

use crate::api::Api;
use crate::client::{Request, Response};
use crate::provider::{CLIENT, Fault, Provider, SECRET};

on_every_store! {
    a_person_signs_in_at_the_issuer,
    each_fault_of_the_issuer_ends_the_sign_in,
    an_issuer_that_is_away_is_named,
    a_code_is_used_once,
    a_sign_in_belongs_to_its_browser,
    a_sign_in_takes_ten_minutes_at_most,
    a_response_of_another_issuer_is_refused,
    a_person_without_a_role_has_no_session,
    the_sign_in_returns_to_places_of_the_page_only,
    a_browser_is_sent_to_the_page_with_the_reason,
    failed_sign_ins_lock_the_address_out,
    a_session_of_the_issuer_ends_after_twelve_hours,
    a_session_ends_at_a_server_without_its_issuer,
    a_server_without_an_issuer_has_no_such_sign_in,
    the_way_back_has_the_public_name_and_the_base_path,
}

fn options(provider: &Provider) -> ServerOptions {
    let mut sign_in = SignInOptions::new(CLIENT);
    sign_in.client_secret = Some(ClientSecret::new(SECRET));
    sign_in.name = "the issuer".to_owned();
    let mut issuer = provider.options();
    issuer.sign_in = Some(sign_in);
    let mut options = ServerOptions::default();
    options.issuer = Some(issuer);
    options
}

async fn start(api: &Api) -> (Provider, Api) {
    let provider = Provider::start(&api.clock).await;
    let server = api.another(options(&provider)).await;
    (provider, server)
}

fn cookie(response: &Response) -> String {
    let header = response.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {response:?}"));
    header.split(';').next().unwrap().to_owned()
}

/// A sign-in that the issuer has accepted: the cookie of the browser, and the path by which it
/// returns.
struct Accepted {
    cookie: String,
    path: String,
}

impl Accepted {
    fn request(&self) -> Request {
        Request::new("GET", &self.path).header("cookie", &self.cookie)
    }
}

/// Begins a sign-in and lets the issuer accept it.
async fn accepted(api: &Api, provider: &Provider, query: &str) -> Accepted {
    let begun = api.send(Request::new("GET", &format!("/v1/sign-in/oidc{query}"))).await;
    assert_eq!(begun.status, 303, "{}", begun.text());
    let at_issuer = begun.header("location").unwrap().strip_prefix(&provider.url).unwrap();
    let address = provider.url.strip_prefix("http://").unwrap().parse().unwrap();
    let returned = Request::new("GET", at_issuer).send(address).await;
    let location = returned.header("location").unwrap();
    let path = location.strip_prefix("http://localhost").unwrap().to_owned();
    Accepted { cookie: cookie(&begun), path }
}

async fn me(api: &Api, cookie: &str) -> Response {
    api.send(Request::new("GET", "/v1/me").header("cookie", cookie)).await
}

/// Signs in and returns the cookie of the session.
async fn sign_in(api: &Api, provider: &Provider) -> String {
    let returned = api.send(accepted(api, provider, "").await.request()).await;
    assert_eq!(returned.status, 303, "{}", returned.text());
    cookie(&returned)
}

/// Shows: W8
async fn a_person_signs_in_at_the_issuer(api: Api) {
    let (provider, api) = start(&api).await;
    let methods = api.send(Request::new("GET", "/v1/sign-in/methods")).await.expect(200);
    assert_eq!(methods, json!({"oidc": "the issuer"}));
    let returned = api.send(accepted(&api, &provider, "?to=%23%2Ftasks%2F5").await.request()).await;
    assert_eq!((returned.status, returned.header("location")), (303, Some("../../../#/tasks/5")));
    let cookies: Vec<_> = returned.headers.iter().filter(|(name, _)| name == "set-cookie").map(|it| &it.1).collect();
    assert!(cookies[0].starts_with("onward-session-80=") && cookies[0].contains("SameSite=Strict"), "{cookies:?}");
    assert!(cookies[1].starts_with("onward-sign-in-80=;") && cookies[1].contains("Max-Age=0"), "{cookies:?}");
    let session = cookie(&returned);
    let shown = me(&api, &session).await.expect(200);
    assert_eq!((&shown["name"], &shown["role"]), (&json!("ada"), &json!("operator")));
    let listed = api.get("/v1/sessions").await.expect(200);
    assert_eq!(
        (&listed["items"][0]["subject"], &listed["items"][0]["issuer"]),
        (&json!("ada-1"), &json!(provider.url))
    );
    let audit = api.get("/v1/audit").await.expect(200);
    let record = &audit["items"][0];
    assert_eq!((&record["key"], &record["name"]), (&json!("subject:ada-1"), &json!("ada")), "{audit}");
    assert_eq!(record["object"], "/v1/sign-in/oidc/callback", "{audit}");
    let out = Request::new("POST", "/v1/sign-out").header("cookie", &session).header("x-onward-page", "1");
    api.send(out).await.expect(204);
    me(&api, &session).await.expect_problem(401, "credential_invalid");
}

/// Shows: W8
async fn each_fault_of_the_issuer_ends_the_sign_in(api: Api) {
    let (provider, api) = start(&api).await;
    for (fault, status, code) in [
        (Fault::Claim("nonce"), 401, "credential_invalid"),
        (Fault::Claim("iss"), 401, "credential_invalid"),
        (Fault::Claim("aud"), 401, "credential_invalid"),
        (Fault::Claim("azp"), 401, "credential_invalid"),
        (Fault::Claim("exp"), 401, "credential_invalid"),
        (Fault::UnknownKey, 401, "credential_invalid"),
        (Fault::Unsigned, 401, "credential_invalid"),
        (Fault::Huge("/token"), 503, "issuer_unavailable"),
        (Fault::Failing("/token"), 503, "issuer_unavailable"),
        (Fault::NoToken, 503, "issuer_unavailable"),
    ] {
        let accepted = accepted(&api, &provider, "").await;
        provider.state().fault = Some(fault);
        let returned = api.send(accepted.request()).await;
        assert_eq!((returned.status, returned.header("set-cookie")), (status, None), "{fault:?}: {}", returned.text());
        returned.expect_problem(status, code);
        provider.state().fault = None;
        // Failures of one address count together.
        api.clock.advance(bounds::LOCK_OUT);
    }
    assert_eq!(api.get("/v1/sessions").await.expect(200)["items"], json!([]));
}

async fn an_issuer_that_is_away_is_named(api: Api) {
    let provider = Provider::start(&api.clock).await;
    let mut options = options(&provider);
    options.issuer.as_mut().unwrap().time = std::time::Duration::from_millis(200);
    let server = api.another(options).await;
    let accepted = accepted(&server, &provider, "").await;
    provider.state().fault = Some(Fault::Silent("/token"));
    server.send(accepted.request()).await.expect_problem(503, "issuer_unavailable");
    provider.state().fault = Some(Fault::Failing("/keys"));
    api.clock.advance(bounds::ISSUER_STALE);
    server.send(Request::new("GET", "/v1/sign-in/oidc")).await.expect_problem(503, "issuer_unavailable");
}

async fn a_code_is_used_once(api: Api) {
    let (provider, api) = start(&api).await;
    let accepted = accepted(&api, &provider, "").await;
    assert_eq!(api.send(accepted.request()).await.status, 303);
    api.send(accepted.request()).await.expect_problem(401, "credential_invalid");
}

/// Shows: W8
async fn a_sign_in_belongs_to_its_browser(api: Api) {
    let (provider, api) = start(&api).await;
    let (own, other) = (accepted(&api, &provider, "").await, accepted(&api, &provider, "").await);
    // The code of one person in the browser of another one would sign in as the wrong person.
    let mixed = Request::new("GET", &own.path).header("cookie", &other.cookie);
    api.send(mixed).await.expect_problem(401, "credential_invalid");
    api.send(Request::new("GET", &own.path)).await.expect_problem(401, "credential_invalid");
    let without_state = own.path.replace("state=", "other=");
    let without_state = Request::new("GET", &without_state).header("cookie", &own.cookie);
    api.send(without_state).await.expect_problem(401, "credential_invalid");
    assert_eq!(api.send(own.request()).await.status, 303);
}

async fn a_sign_in_takes_ten_minutes_at_most(api: Api) {
    let (provider, api) = start(&api).await;
    let accepted = accepted(&api, &provider, "").await;
    api.clock.advance(bounds::OIDC_TIME);
    let refused = api.send(accepted.request()).await.expect_problem(401, "credential_invalid");
    assert!(refused["detail"].as_str().unwrap().contains("took too long"), "{refused}");
}

async fn a_response_of_another_issuer_is_refused(api: Api) {
    let (provider, api) = start(&api).await;
    let accepted = accepted(&api, &provider, "").await;
    let path = accepted.path.replace("iss=http", "iss=https");
    let refused = api.send(Request::new("GET", &path).header("cookie", &accepted.cookie)).await;
    refused.expect_problem(401, "credential_invalid");
}

async fn a_person_without_a_role_has_no_session(api: Api) {
    let (provider, api) = start(&api).await;
    provider.state().person = json!({"sub": "bob-2", "groups": ["others"]});
    let returned = api.send(accepted(&api, &provider, "").await.request()).await;
    assert_eq!(returned.header("set-cookie"), None);
    returned.expect_problem(403, "forbidden");
}

/// Shows: W8
async fn the_sign_in_returns_to_places_of_the_page_only(api: Api) {
    let (_provider, api) = start(&api).await;
    for to in ["https:%2F%2Fevil.example", "%2F%2Fevil.example", "%2F", "%23", "%23%2Fa%0d%0aset-cookie:%20a=b"] {
        let response = api.send(Request::new("GET", &format!("/v1/sign-in/oidc?to={to}"))).await;
        assert_eq!(response.expect_problem(422, "invalid")["field"], "to", "{to}");
    }
}

async fn a_browser_is_sent_to_the_page_with_the_reason(api: Api) {
    let (provider, api) = start(&api).await;
    let accepted = accepted(&api, &provider, "").await;
    let path = "/v1/sign-in/oidc/callback?error=access_denied&error_description=%3Cb%3E&state=";
    let state = accepted.path.split("state=").nth(1).unwrap().split('&').next().unwrap();
    let denied = Request::new("GET", &format!("{path}{state}")).header("cookie", &accepted.cookie);
    let shown = api.send(denied.clone()).await.expect_problem(401, "credential_invalid");
    assert!(shown["detail"].as_str().unwrap().ends_with("access_denied"), "{shown}");
    let shown = api.send(denied.header("accept", "text/html,*/*")).await;
    assert_eq!((shown.status, shown.header("location")), (303, Some("../../../#/refused/denied")));
    let over = Request::new("GET", &accepted.path).header("accept", "text/html");
    assert_eq!(api.send(over).await.header("location"), Some("../../../#/refused/over"));
}

async fn failed_sign_ins_lock_the_address_out(api: Api) {
    let (provider, api) = start(&api).await;
    let wrong = accepted(&api, &provider, "").await;
    let wrong = Accepted { path: wrong.path.replace("code=code", "code=guess"), ..wrong };
    for _ in 0..bounds::ATTEMPTS {
        api.send(wrong.request()).await.expect_problem(401, "credential_invalid");
    }
    let right = accepted(&api, &provider, "").await;
    api.send(right.request()).await.expect_problem(429, "too_many_attempts");
    api.clock.advance(bounds::ATTEMPTS_TIME);
    assert_eq!(api.send(right.request()).await.status, 303);
}

async fn a_session_of_the_issuer_ends_after_twelve_hours(api: Api) {
    let (provider, api) = start(&api).await;
    let session = sign_in(&api, &provider).await;
    api.clock.advance(bounds::OIDC_SESSION_TIME - std::time::Duration::from_secs(1));
    me(&api, &session).await.expect(200);
    api.clock.advance(std::time::Duration::from_secs(1));
    me(&api, &session).await.expect_problem(401, "credential_invalid");
}

async fn a_session_ends_at_a_server_without_its_issuer(api: Api) {
    let (provider, with_issuer) = start(&api).await;
    let session = sign_in(&with_issuer, &provider).await;
    me(&api, &session).await.expect_problem(401, "credential_invalid");
    let other = api.another(options(&Provider::start(&api.clock).await)).await;
    me(&other, &session).await.expect_problem(401, "credential_invalid");
    me(&with_issuer, &session).await.expect(200);
}

async fn a_server_without_an_issuer_has_no_such_sign_in(api: Api) {
    assert_eq!(api.send(Request::new("GET", "/v1/sign-in/methods")).await.expect(200), json!({}));
    for path in ["/v1/sign-in/oidc", "/v1/sign-in/oidc/callback?code=a&state=b"] {
        api.send(Request::new("GET", path)).await.expect_problem(404, "not_found");
    }
    assert_eq!(api.get("/v1/me").await.expect(200)["role"], Role::Admin.as_str());
}

async fn the_way_back_has_the_public_name_and_the_base_path(api: Api) {
    let provider = Provider::start(&api.clock).await;
    let mut options = options(&provider);
    options.hosts = vec!["work.example".to_owned()];
    options.base_path = "/onward".to_owned();
    let server = api.another(options).await;
    let begin = |host: &str| Request::new("GET", "/onward/v1/sign-in/oidc").header("host", host);
    let begun = server.send(begin("work.example")).await;
    let location = begun.header("location").unwrap();
    let way_back = "redirect_uri=https%3A%2F%2Fwork.example%2Fonward%2Fv1%2Fsign-in%2Foidc%2Fcallback";
    assert!(location.contains(way_back), "{location}");
    let set = begun.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-onward-sign-in=") && set.ends_with("; Secure"), "{set}");
    server.send(begin("evil.example")).await.expect_problem(421, "host_unknown");
}
