//! [`Resend`]: when a request is sent again within its visit, for both versions of HTTP. Nothing else
//! in this crate sends a request twice.
//!
//! A server may close a kept connection whenever it likes, and its farewell may cross our request.
//! A failure on such a connection before the whole head of our answer is about the connection,
//! not about the page (RFC 9110, section 9.2.2; RFC 9112, section 9.3.1): the request goes out again,
//! once, on a fresh connection, and the first one counts as no attempt. On a fresh connection the same
//! is the server's answer.

use http::{Response, StatusCode};
use telusur_model::{HttpVersion, Reason};

use crate::failure::Failure;

/// Most requests that one visit sends: on a kept connection, on a fresh one, and over HTTP/1.1.
pub const REQUESTS_PER_VISIT_MAX: usize = 3;

/// How a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resend {
    /// The kept connection was no good.
    OnFreshConnection,
    /// The server cannot answer this in HTTP/2.
    OverHttp1,
}

/// What a request was sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentOn {
    /// Whether the connection had served another visit before.
    pub(crate) is_reused: bool,
    pub(crate) is_http2: bool,
    /// What the crawl allows.
    pub(crate) http: HttpVersion,
}

impl Resend {
    /// Whether a request is sent again, given what came before the end of a head.
    pub(crate) fn after_head<B>(
        head: Result<&Response<B>, &Failure>,
        sent_on: SentOn,
    ) -> Option<Self> {
        let is_about_connection = match head {
            Ok(answer) => matches!(
                answer.status(),
                StatusCode::REQUEST_TIMEOUT | StatusCode::MISDIRECTED_REQUEST
            ),
            Err(failure) => {
                if let Some(resend) = Self::after_body(failure, sent_on) {
                    return Some(resend);
                }
                is_end_of_connection(failure)
            }
        };
        (sent_on.is_reused && is_about_connection).then_some(Self::OnFreshConnection)
    }

    /// Whether a request is sent again after its answer broke off.
    pub(crate) fn after_body(failure: &Failure, sent_on: SentOn) -> Option<Self> {
        let may_change_version = sent_on.is_http2 && sent_on.http == HttpVersion::Auto;
        (failure.wants_http1 && may_change_version).then_some(Self::OverHttp1)
    }
}

/// Whether a failure says that the connection ended, or that what came was not for us. Silence and
/// floods are not among them: the server has our request and chose to treat it so.
fn is_end_of_connection(failure: &Failure) -> bool {
    matches!(
        failure.why,
        Reason::EmptyReply
            | Reason::ConnectionReset
            | Reason::Truncated
            | Reason::ProtocolError
            | Reason::TlsError
    )
}
