//! Where requests come in: connections with their limits, bodies with theirs, and what every answer has in
//! common. Knows HTTP, and nothing of crawls.

mod answer;
mod body;
mod connections;
mod finish;
mod params;
mod patient;
mod permit;

pub(crate) use self::answer::{answer, created, paged, text_answer};
pub(crate) use self::body::{
    JsonBody, MaybeJsonBody, is_json_request, read_body, read_body_up_to, read_json,
};
pub use self::connections::serve;
pub(crate) use self::finish::{finish, is_for_programs, no_such_method, no_such_route};
pub(crate) use self::params::Params;
pub(crate) use self::permit::{guard, permit};
