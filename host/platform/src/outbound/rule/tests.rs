use super::*;

fn strict() -> Rule {
    Rule {
        allow_http: false,
        allow_private_networks: false,
        ports: vec![443, 8443],
    }
}

/// URLs and why each is refused; none: it is not.
const URLS: &[(&str, Option<NotAllowed>)] = &[
    // What is meant to be used.
    ("https://example.com", None),
    ("https://example.com/", None),
    ("https://example.com/hooks/nudge?key=value&x=%20", None),
    ("https://example.com/#fragment", None),
    ("https://example.com:443/", None),
    ("https://example.com:8443/hook", None),
    ("https://EXAMPLE.com/", None),
    ("HTTPS://example.com/", None),
    ("https://a-b.c_d.example.co.uk/", None),
    ("https://example.com./", None),
    ("https://8.8.8.8/", None),
    ("https://1.1.1.1:8443/", None),
    ("https://134744072/", None),
    ("https://[2606:4700:4700::1111]/", None),
    ("https://[2001:4860:4860::8888]:8443/", None),
    ("https://[::ffff:8.8.8.8]/", None),
    ("https://[64:ff9b::8.8.8.8]/", None),
    ("https://bücher.example/", None),
    ("https://xn--bcher-kva.example/", None),
    ("https://例え.テスト/", None),
    ("https://localhost.example.com/", None),
    ("https://127.0.0.1.example.com/", None),
    ("https://internal.example.com/", None),
    ("https://example.com/http://localhost/", None),
    ("https://example.com/@localhost", None),
    ("https://example.com/?u=user@host", None),
    // Schemes.
    ("http://example.com/", Some(NotAllowed::Scheme)),
    ("http://127.0.0.1/", Some(NotAllowed::Scheme)),
    ("ftp://example.com/", Some(NotAllowed::Scheme)),
    ("file:///etc/passwd", Some(NotAllowed::Scheme)),
    ("gopher://example.com/", Some(NotAllowed::Scheme)),
    ("javascript:alert(1)", Some(NotAllowed::Scheme)),
    ("data:text/plain,x", Some(NotAllowed::Scheme)),
    ("wss://example.com/", Some(NotAllowed::Scheme)),
    ("unix:/run/docker.sock", Some(NotAllowed::Scheme)),
    // No URL, or one to some readers only.
    ("", Some(NotAllowed::Malformed)),
    ("example.com", Some(NotAllowed::Malformed)),
    ("//example.com/", Some(NotAllowed::Malformed)),
    ("/hook", Some(NotAllowed::Malformed)),
    ("https:", Some(NotAllowed::Malformed)),
    ("https://", Some(NotAllowed::Malformed)),
    ("https:///example.com/", Some(NotAllowed::Malformed)),
    ("https:example.com", Some(NotAllowed::Malformed)),
    ("https:/example.com", Some(NotAllowed::Malformed)),
    ("https:\\\\example.com\\", Some(NotAllowed::Malformed)),
    (
        "https://example.com\\@127.0.0.1/",
        Some(NotAllowed::Malformed),
    ),
    (" https://example.com/", Some(NotAllowed::Malformed)),
    ("https://example.com/ ", Some(NotAllowed::Malformed)),
    ("https://exam\nple.com/", Some(NotAllowed::Malformed)),
    ("https://exam\tple.com/", Some(NotAllowed::Malformed)),
    (
        "https://example.com/\r\nHost:x",
        Some(NotAllowed::Malformed),
    ),
    ("https://example.com/\0", Some(NotAllowed::Malformed)),
    ("https://exa mple.com/", Some(NotAllowed::Malformed)),
    ("https://exa%20mple.com/", Some(NotAllowed::Malformed)),
    ("https://example.com:99999/", Some(NotAllowed::Malformed)),
    ("https://example.com:-1/", Some(NotAllowed::Malformed)),
    ("https://[::1/", Some(NotAllowed::Malformed)),
    ("https://[fe80::1%25eth0]/", Some(NotAllowed::Malformed)),
    ("https://[fe80::1%eth0]/", Some(NotAllowed::Malformed)),
    ("https://999.999.999.999/", Some(NotAllowed::Malformed)),
    ("https://1.2.3.4.5/", Some(NotAllowed::Malformed)),
    ("https://256/256/", Some(NotAllowed::Host)),
    ("https://4294967296/", Some(NotAllowed::Malformed)),
    ("https://xn--/", Some(NotAllowed::Malformed)),
    // User names and passwords.
    ("https://user@example.com/", Some(NotAllowed::UserInfo)),
    ("https://user:pass@example.com/", Some(NotAllowed::UserInfo)),
    ("https://:pass@example.com/", Some(NotAllowed::UserInfo)),
    ("https://@example.com/", Some(NotAllowed::UserInfo)),
    ("https://example.com@127.0.0.1/", Some(NotAllowed::UserInfo)),
    (
        "https://example.com:443@127.0.0.1/",
        Some(NotAllowed::UserInfo),
    ),
    // Ports.
    ("https://example.com:80/", Some(NotAllowed::Port)),
    ("https://example.com:22/", Some(NotAllowed::Port)),
    ("https://example.com:25/", Some(NotAllowed::Port)),
    ("https://example.com:8442/", Some(NotAllowed::Port)),
    ("https://example.com:8444/", Some(NotAllowed::Port)),
    ("https://example.com:0/", Some(NotAllowed::Port)),
    ("https://example.com:65535/", Some(NotAllowed::Port)),
    // Addresses of IPv4, in each of their spellings.
    ("https://127.0.0.1/", Some(NotAllowed::Host)),
    ("https://127.0.0.1./", Some(NotAllowed::Host)),
    ("https://127.1/", Some(NotAllowed::Host)),
    ("https://127.0.1/", Some(NotAllowed::Host)),
    ("https://2130706433/", Some(NotAllowed::Host)),
    ("https://0x7f000001/", Some(NotAllowed::Host)),
    ("https://0x7f.1/", Some(NotAllowed::Host)),
    ("https://0X7F.0.0.1/", Some(NotAllowed::Host)),
    ("https://017700000001/", Some(NotAllowed::Host)),
    ("https://0177.0.0.1/", Some(NotAllowed::Host)),
    ("https://0177.0.0.0x1/", Some(NotAllowed::Host)),
    ("https://127.255.255.254/", Some(NotAllowed::Host)),
    ("https://0/", Some(NotAllowed::Host)),
    ("https://0.0.0.0/", Some(NotAllowed::Host)),
    ("https://10.0.0.1/", Some(NotAllowed::Host)),
    ("https://10.1/", Some(NotAllowed::Host)),
    ("https://172.16.0.1/", Some(NotAllowed::Host)),
    ("https://192.168.1.1/", Some(NotAllowed::Host)),
    ("https://192.168.257/", Some(NotAllowed::Host)),
    (
        "https://169.254.169.254/latest/meta-data/",
        Some(NotAllowed::Host),
    ),
    ("https://2852039166/", Some(NotAllowed::Host)),
    ("https://0xa9fea9fe/", Some(NotAllowed::Host)),
    ("https://100.64.0.1/", Some(NotAllowed::Host)),
    ("https://100.100.100.200/", Some(NotAllowed::Host)),
    ("https://168.63.129.16/", Some(NotAllowed::Host)),
    ("https://192.0.0.192/", Some(NotAllowed::Host)),
    ("https://192.0.2.1/", Some(NotAllowed::Host)),
    ("https://198.51.100.1/", Some(NotAllowed::Host)),
    ("https://203.0.113.1/", Some(NotAllowed::Host)),
    ("https://198.18.0.1/", Some(NotAllowed::Host)),
    ("https://224.0.0.1/", Some(NotAllowed::Host)),
    ("https://255.255.255.255/", Some(NotAllowed::Host)),
    ("https://１２７.０.０.１/", Some(NotAllowed::Host)),
    ("https://①②⑦.⓪.⓪.①/", Some(NotAllowed::Host)),
    ("https://127。0。0。1/", Some(NotAllowed::Host)),
    ("https://%31%32%37.0.0.1/", Some(NotAllowed::Host)),
    // Addresses of IPv6.
    ("https://[::]/", Some(NotAllowed::Host)),
    ("https://[::1]/", Some(NotAllowed::Host)),
    ("https://[0:0:0:0:0:0:0:1]/", Some(NotAllowed::Host)),
    ("https://[::ffff:127.0.0.1]/", Some(NotAllowed::Host)),
    ("https://[::ffff:7f00:1]/", Some(NotAllowed::Host)),
    ("https://[::ffff:169.254.169.254]/", Some(NotAllowed::Host)),
    ("https://[::127.0.0.1]/", Some(NotAllowed::Host)),
    ("https://[::8.8.8.8]/", Some(NotAllowed::Host)),
    ("https://[64:ff9b::127.0.0.1]/", Some(NotAllowed::Host)),
    ("https://[64:ff9b::a9fe:a9fe]/", Some(NotAllowed::Host)),
    ("https://[64:ff9b:1::10.0.0.1]/", Some(NotAllowed::Host)),
    ("https://[64:ff9b:1::8.8.8.8]/", Some(NotAllowed::Host)),
    ("https://[2002:7f00:1::]/", Some(NotAllowed::Host)),
    ("https://[2002:808:808::]/", Some(NotAllowed::Host)),
    (
        "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
        Some(NotAllowed::Host),
    ),
    ("https://[2001:db8::1]/", Some(NotAllowed::Host)),
    ("https://[3fff::1]/", Some(NotAllowed::Host)),
    ("https://[fe80::1]/", Some(NotAllowed::Host)),
    ("https://[fec0::1]/", Some(NotAllowed::Host)),
    ("https://[fc00::1]/", Some(NotAllowed::Host)),
    ("https://[fd00:ec2::254]/", Some(NotAllowed::Host)),
    ("https://[ff02::1]/", Some(NotAllowed::Host)),
    ("https://[100::1]/", Some(NotAllowed::Host)),
    ("https://[4000::1]/", Some(NotAllowed::Host)),
    // Names that are not public.
    ("https://localhost/", Some(NotAllowed::Host)),
    ("https://localhost./", Some(NotAllowed::Host)),
    ("https://LOCALHOST/", Some(NotAllowed::Host)),
    ("https://ⓛocalhost/", Some(NotAllowed::Host)),
    ("https://ｌｏｃａｌｈｏｓｔ/", Some(NotAllowed::Host)),
    ("https://l%6fcalhost/", Some(NotAllowed::Host)),
    ("https://a.localhost/", Some(NotAllowed::Host)),
    ("https://a.b.localhost./", Some(NotAllowed::Host)),
    ("https://localhost.localdomain/", Some(NotAllowed::Host)),
    ("https://printer.local/", Some(NotAllowed::Host)),
    ("https://metadata.google.internal/", Some(NotAllowed::Host)),
    ("https://router.home.arpa/", Some(NotAllowed::Host)),
    ("https://router.lan/", Some(NotAllowed::Host)),
    ("https://wiki.intranet/", Some(NotAllowed::Host)),
    ("https://x.onion/", Some(NotAllowed::Host)),
    ("https://intranet/", Some(NotAllowed::Host)),
    ("https://metadata/", Some(NotAllowed::Host)),
    ("https://postgres:8443/", Some(NotAllowed::Host)),
    // Names that are none.
    ("https://./", Some(NotAllowed::Host)),
    ("https://../", Some(NotAllowed::Host)),
    ("https://.example.com/", Some(NotAllowed::Host)),
    ("https://example..com/", Some(NotAllowed::Host)),
    ("https://example.com../", Some(NotAllowed::Host)),
    ("https://-example.com/", Some(NotAllowed::Host)),
    ("https://example-.com/", Some(NotAllowed::Host)),
    ("https://exam!ple.com/", Some(NotAllowed::Host)),
    ("https://*.example.com/", Some(NotAllowed::Host)),
];

#[test]
fn each_url_is_judged_as_the_table_says() {
    assert!(URLS.len() >= 100);
    let mut wrong = Vec::new();
    for (url, expected) in URLS {
        let refused = strict().check(url).err();
        if refused != *expected {
            wrong.push(format!("{url:?}: {refused:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sizes_are_limited_at_the_limit_and_not_before() {
    let label = "a".repeat(63);
    let host = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    assert_eq!(host.len(), 253);
    assert!(strict().check(&format!("https://{host}/")).is_ok());
    let host = format!("a{host}");
    assert!(strict().check(&format!("https://{host}/")).is_err());
    assert!(strict().check(&format!("https://{label}.com/")).is_ok());
    assert!(strict().check(&format!("https://a{label}.com/")).is_err());
    let path = "p".repeat(MOST_URL_BYTES - "https://example.com/".len());
    assert!(
        strict()
            .check(&format!("https://example.com/{path}"))
            .is_ok()
    );
    assert_eq!(
        strict().check(&format!("https://example.com/{path}p")),
        Err(NotAllowed::TooLong)
    );
}

#[test]
fn development_may_allow_http_and_private_networks() {
    let http = Rule {
        allow_http: true,
        ..strict()
    };
    assert!(http.check("http://example.com/").is_ok());
    assert!(http.check("http://example.com:8443/").is_ok());
    assert_eq!(
        http.check("http://example.com:8080/"),
        Err(NotAllowed::Port)
    );
    assert_eq!(http.check("http://127.0.0.1/"), Err(NotAllowed::Host));
    assert_eq!(http.check("http://localhost/"), Err(NotAllowed::Host));
    assert_eq!(http.check("ftp://example.com/"), Err(NotAllowed::Scheme));

    let private = Rule {
        allow_private_networks: true,
        ..strict()
    };
    for url in [
        "https://127.0.0.1:49152/",
        "https://localhost/",
        "https://[::1]:1/",
        "https://postgres:5432/",
    ] {
        assert!(private.check(url).is_ok(), "{url}");
    }
    assert_eq!(private.check("http://127.0.0.1/"), Err(NotAllowed::Scheme));
    assert_eq!(
        private.check("https://a@127.0.0.1/"),
        Err(NotAllowed::UserInfo)
    );
    assert_eq!(private.check("https://a..b/"), Err(NotAllowed::Host));
}

#[test]
fn what_is_requested_has_its_one_spelling() {
    let url = strict().check("https://EXAMPLE.com:443/A%20b").unwrap();
    assert_eq!(url.as_str(), "https://example.com/A%20b");
    let url = strict().check("https://134744072/").unwrap();
    assert_eq!(url.as_str(), "https://8.8.8.8/");
}
