use super::*;

#[test]
fn what_is_on_this_machine_is_never_reached_through_a_proxy() {
    let local = |url: &str| is_loopback(&Url::parse(url).unwrap());
    for url in [
        "http://localhost/v1",
        "http://127.0.0.1:8080/v1",
        "http://127.9.9.9/v1",
        "http://[::1]:8080/v1",
        "http://[::ffff:127.0.0.1]/v1",
        "http://models.localhost/v1",
        "http://0.0.0.0:8080/v1",
    ] {
        assert!(local(url), "{url}");
    }
    for url in [
        "https://api.example.com/v1",
        "http://10.0.0.7/v1",
        "http://localhost.example.com/v1",
        "http://[fe80::1]/v1",
    ] {
        assert!(!local(url), "{url}");
    }
}

#[test]
fn a_client_is_built_for_both_schemes() {
    for url in ["http://127.0.0.1/v1", "https://127.0.0.1/v1"] {
        build_client(&Url::parse(url).unwrap(), &Deadlines::default()).unwrap();
    }
}
