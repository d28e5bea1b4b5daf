//! The `Basic` scheme of RFC 7617: a user name and a password, readable by everyone who sees the header.

use data_encoding::BASE64;
use http::HeaderValue;

/// The value of an `Authorization` header.
pub(crate) fn basic_authorization(user: &str, password: &str) -> HeaderValue {
    let coded = BASE64.encode(format!("{user}:{password}").as_bytes());
    let mut value = HeaderValue::try_from(format!("Basic {coded}"))
        .expect("base64 has only characters that may stand in a header");
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let value = basic_authorization("Aladdin", "open sesame");
        assert_eq!(value, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(value.is_sensitive());
    }
}
