use super::*;

#[test]
fn what_people_write_and_nothing_else() {
    for (text, ms) in [
        ("500ms", 500),
        ("30s", 30_000),
        ("10m", 600_000),
        ("2h", 7_200_000),
        (" 1 min ", 60_000),
    ] {
        assert_eq!(duration_ms(text), Ok(ms), "{text}");
    }
    for (text, wanted) in [
        ("1B", 1),
        ("512KiB", 512 << 10),
        ("64M", 64 << 20),
        ("4GiB", 4 << 30),
        ("1tb", 1 << 40),
    ] {
        assert_eq!(bytes(text), Ok(wanted), "{text}");
    }
    for text in [
        "",
        "10",
        "m",
        "-1m",
        "1.5h",
        "0s",
        "1d",
        "99999999999999999999s",
        "18446744073709551615h",
    ] {
        assert!(
            duration_ms(text).unwrap_err().contains("write 500ms"),
            "{text}"
        );
    }
    for text in ["", "10", "0B", "1PB", "18446744073709551615GiB"] {
        assert!(bytes(text).unwrap_err().contains("write 512KiB"), "{text}");
    }
}
