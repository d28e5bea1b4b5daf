//! What is known about an origin (scheme, host and port): the unit of robots.txt.

use serde::{Deserialize, Serialize};

use crate::{PageUrl, Reason, Timestamp};

/// Scheme and port: which of a host's origins a URL belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Door {
    /// Whether it is https.
    pub is_secure: bool,
    /// The port.
    pub port: u16,
}

impl Door {
    /// The door that a URL goes through.
    pub fn of(url: &PageUrl) -> Self {
        Self { is_secure: url.is_secure(), port: url.port() }
    }
}

/// What is kept about an origin, for all crawls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginRow {
    /// The origin, as `https://example.org`.
    pub origin: String,
    /// When robots.txt was asked for.
    pub asked_at: Timestamp,
    /// The URLs that redirected to it, first to last.
    pub redirects: Vec<String>,
    /// What came of it.
    pub robots: RobotsAnswer,
    /// How the origin answers for pages that do not exist, once that was tried.
    pub not_found: Option<NotFoundLook>,
}

/// What came of asking for robots.txt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RobotsAnswer {
    /// There is one.
    Text {
        /// As it was sent, as far as it is read.
        #[serde(with = "text_bytes")]
        text: Vec<u8>,
    },
    /// There is none, so nothing is forbidden.
    Missing {
        /// What the origin said, for people.
        why: String,
    },
    /// The rules are unknown.
    Unreachable {
        /// The kind of trouble.
        why: Reason,
        /// What exactly, for people.
        detail: String,
    },
}

/// How an origin answers for a page that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotFoundLook {
    /// It says so.
    Honest,
    /// With a page that says it is one: this is what such a page looks like.
    Soft {
        /// Hash of its words, near that of pages with nearly the same words.
        fingerprint: u64,
        /// Hash of its title.
        title_hash: u64,
    },
}

/// Text for people where the format is for people, bytes elsewhere.
mod text_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            String::from_utf8_lossy(bytes).serialize(serializer)
        } else {
            serializer.serialize_bytes(bytes)
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer).map(String::into_bytes)
        } else {
            <&[u8]>::deserialize(deserializer).map(<[u8]>::to_vec)
        }
    }
}
