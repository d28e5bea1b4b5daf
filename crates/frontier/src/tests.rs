//! Simulated crawls: hours of them, in virtual time, from a seed.

mod back_pressure;
mod cost;
mod crowd;
mod fairness;
mod head;
mod ids;
mod model;
mod parse_cost;
mod politeness;
mod retry_after;
mod robots;
mod rules;
mod sim;
mod suspicion;
