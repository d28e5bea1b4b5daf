//! What goes over HTTP, as types: the bodies that are read and the answers that are written. Each of
//! them is also a part of the API's description. What is shown everywhere is a type of the engine; here
//! is what only HTTP has. Nothing here decides anything.

mod request;
mod s1;
mod search;

pub use telusur_engine::json::*;

pub use self::request::{FetchBody, MapBody, ResumeRequest};
pub use self::s1::{S1Answer, S1Job, S1Page, S1Request, S1Started};
pub use self::search::SearchBody;
