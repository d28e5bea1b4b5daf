//! [`Exchange`]: one request and its answer, on one connection.

use std::net::IpAddr;
use std::pin::{Pin, pin};

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, COOKIE, HOST, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT,
};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::Empty;
use hyper::body::Incoming;
use telusur_model::{Clock, FetchOutcome, Moment, PageUrl, RawPage, Reason};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::answer::{BodyEnd, has_ambiguous_framing, kept_headers, redirect};
use crate::body::{Pace, read_body, skip_body};
use crate::budget::BodyBudget;
use crate::conditions::Conditions;
use crate::connection::Connection;
use crate::decode::{self, Decoder};
use crate::failure::Failure;
use crate::profile::FetchProfile;
use crate::resend::{Resend, SentOn};
use crate::settings::FetchSettings;

/// What we like best; a server that has something else sends that.
const ACCEPTED_TYPES: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// What one visit asks, and how long it may take.
pub(crate) struct Exchange<'a> {
    pub(crate) settings: &'a FetchSettings,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) url: &'a PageUrl,
    pub(crate) profile: &'a FetchProfile,
    pub(crate) conditions: &'a Conditions,
    pub(crate) budget: &'a BodyBudget,
    pub(crate) deadline: Instant,
}

/// What is to be told about a visit however it ends.
pub(crate) struct Sending {
    pub(crate) on_request: Option<mpsc::Sender<Moment>>,
    pub(crate) requested_at: Option<Moment>,
    pub(crate) address: Option<IpAddr>,
    /// Milliseconds that the visit waited for room here. The site has no part in them.
    pub(crate) waited_ms: u64,
}

/// An answer, and whether its connection was left in order.
pub(crate) struct FinishedExchange {
    pub(crate) outcome: FetchOutcome,
    pub(crate) is_connection_clean: bool,
}

/// How an exchange ended.
pub(crate) enum Exchanged {
    Answered(FinishedExchange),
    Failed(Failure),
    /// Nothing came that counts as an answer, and the request goes out again.
    Again(Resend),
}

impl Exchange<'_> {
    /// Sends the request on a connection to this host and reads the answer.
    pub(crate) async fn run(
        &self,
        connection: &mut Connection,
        sent_on: SentOn,
        sending: &mut Sending,
    ) -> Exchanged {
        let mut alarm = pin!(sleep_until(self.deadline));
        let head = self.ask(connection, alarm.as_mut(), sending).await;
        if let Some(resend) = Resend::after_head(head.as_ref(), sent_on) {
            return Exchanged::Again(resend);
        }
        let answer = match head {
            Ok(response) => self.answer(connection, response, alarm).await,
            Err(failure) => Err(failure),
        };
        match answer {
            Ok(answer) => Exchanged::Answered(answer),
            Err(failure) => match Resend::after_body(&failure, sent_on) {
                Some(resend) => Exchanged::Again(resend),
                None => Exchanged::Failed(failure),
            },
        }
    }

    /// Sends the request and waits for the head of its answer.
    async fn ask(
        &self,
        connection: &mut Connection,
        mut alarm: Pin<&mut Sleep>,
        sending: &mut Sending,
    ) -> Result<Response<Incoming>, Failure> {
        let request = self.request(connection)?;
        let head_deadline = Instant::now() + self.settings.first_byte_time_max;
        alarm.as_mut().reset(self.deadline.min(head_deadline));
        self.note_sending(connection, sending);
        let head_bytes_max = u64::try_from(self.settings.head_bytes_max).unwrap_or(u64::MAX);
        let response = connection.ask(request, head_bytes_max, alarm).await;
        self.correct_sending(connection, sending);
        response
    }

    fn request(&self, connection: &Connection) -> Result<Request<Empty<Bytes>>, Failure> {
        let proxy = self.profile.proxy.as_ref().filter(|proxy| proxy.reads(self.url));
        // HTTP/2 and proxies are told the whole address; there is no fragment and no password in it.
        let target = if connection.is_http2() || proxy.is_some() {
            self.url.as_str()
        } else {
            self.url.target()
        };
        let bad_url = |error: http::Error| Failure::never(Reason::BadUrl, error.to_string());
        let target = Uri::try_from(target).map_err(|error| bad_url(error.into()))?;
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = target;
        let headers = request.headers_mut();
        if !connection.is_http2() {
            let host = HeaderValue::from_str(self.url.authority())
                .map_err(|error| bad_url(error.into()))?;
            headers.insert(HOST, host);
        }
        headers.insert(USER_AGENT, self.profile.user_agent.clone());
        headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED_TYPES));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(decode::ACCEPT_ENCODING));
        if let Some(cookies) = self.profile.cookies_for(self.url, self.clock.wall()) {
            headers.insert(COOKIE, cookies);
        }
        // What the operator gave goes before what was learned.
        for (name, value) in self.profile.headers_for(self.url) {
            headers.insert(name.clone(), value.clone());
        }
        self.conditions.add_to(headers);
        if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization()) {
            headers.insert(PROXY_AUTHORIZATION, authorization);
        }
        Ok(request)
    }

    fn note_sending(&self, connection: &Connection, sending: &mut Sending) {
        let now = self.clock.now();
        sending.requested_at = Some(now);
        sending.address = Some(connection.address().ip());
        if let Some(on_request) = &sending.on_request {
            // The receiver may be gone.
            let _ = on_request.try_send(now);
        }
    }

    /// The delay counts from when the request really went out: on a busy machine that is a while
    /// after it was given to the connection.
    fn correct_sending(&self, connection: &Connection, sending: &mut Sending) {
        let Some(written_at) = connection.written_at() else { return };
        let since_ms = u64::try_from(written_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let written_at = Moment(self.clock.now().0.saturating_sub(since_ms));
        sending.requested_at = sending.requested_at.max(Some(written_at));
    }

    async fn answer(
        &self,
        connection: &mut Connection,
        response: Response<Incoming>,
        alarm: Pin<&mut Sleep>,
    ) -> Result<FinishedExchange, Failure> {
        let pace = Pace::new(self.settings, self.deadline, Instant::now());
        let (head, body) = response.into_parts();
        if head.headers.len() > self.settings.headers_max {
            return Err(Failure::never(Reason::HeaderTooLarge, "the answer has too many headers"));
        }
        self.profile.learn_cookies(self.url, &head.headers, self.clock.wall());
        // Frames tell where an answer ends in HTTP/2; its headers do not matter.
        let is_framing_clear = connection.is_http2() || !has_ambiguous_framing(&head.headers);
        if let Some(redirected) = redirect(self.url, head.status, &head.headers) {
            let outcome = redirected?;
            let is_read = skip_body(connection, body, pace, alarm).await || connection.is_http2();
            return Ok(FinishedExchange {
                outcome,
                is_connection_clean: is_read && is_framing_clear,
            });
        }
        match head.status {
            StatusCode::NOT_MODIFIED if self.conditions.is_empty() => {
                // There is no page that could be unchanged, and to ask again brings the same answer.
                let detail = "304 in answer to a request without conditions";
                return Err(Failure::never(Reason::ProtocolError, detail));
            }
            StatusCode::NOT_MODIFIED => {
                let outcome = FetchOutcome::NotModified;
                return Ok(FinishedExchange { outcome, is_connection_clean: is_framing_clear });
            }
            StatusCode::PROXY_AUTHENTICATION_REQUIRED if self.profile.proxy.is_some() => {
                let detail = "the proxy refused: it asks for a user name and password (407)";
                return Err(Failure::never(Reason::ProxyError, detail));
            }
            // No request of ours has a range: the profile takes no such header.
            StatusCode::PARTIAL_CONTENT => {
                let detail =
                    "broken server: a part (206) in answer to a request for the whole page";
                return Err(Failure::never(Reason::ProtocolError, detail));
            }
            StatusCode::SWITCHING_PROTOCOLS => {
                let detail = "the server switched protocols without being asked";
                return Err(Failure::never(Reason::ProtocolError, detail));
            }
            _ => {}
        }
        let headers = kept_headers(&head.headers)?;
        let decoder = Decoder::new(&head.headers, self.profile.body_bytes_max)?;
        let end = if connection.is_http2() {
            BodyEnd::Framed
        } else {
            BodyEnd::of(head.status, &head.headers)
        };
        let lease = self.budget.lease();
        let body = read_body(connection, body, decoder, end, lease, pace, alarm).await?;
        // A body that is cut ends its stream, which in HTTP/1.1 is the connection.
        let is_whole = !body.truncated || connection.is_http2();
        let is_connection_clean = is_whole && is_framing_clear;
        let page = RawPage {
            url: self.url.clone(),
            status: head.status.as_u16(),
            headers,
            body: body.bytes,
            truncated: body.truncated,
            wire_bytes: body.wire_bytes,
        };
        Ok(FinishedExchange { outcome: FetchOutcome::Page(page), is_connection_clean })
    }
}
