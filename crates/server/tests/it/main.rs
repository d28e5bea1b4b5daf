//! The service over real connections on loopback: a made-up web behind it, a plain HTTP client before it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod bench;
mod client;
mod crawls;
mod description;
mod description_faults;
mod events;
mod first_service;
mod hang_ups;
mod hostile;
mod indexing;
mod limits;
mod lists;
mod restarts;
mod searching;
mod ui;
mod web;
