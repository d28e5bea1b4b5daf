//! Operations for the terminals of other machines.

use telusur_engine::Part;
use telusur_engine::control::{Length, OperationKind};
use telusur_engine::request::Rights;
use tokio::sync::mpsc;

use super::Service;
use crate::problem::{Code, Problem};

/// Lines on their way to a slow reader; the store is read no faster than they are taken.
const LINES_MAX: usize = 256;

impl Service {
    /// Runs an operation, and gives the lines of what it says.
    pub(crate) fn run_operation(
        &self,
        operation: OperationKind,
        request: serde_json::Value,
        rights: Rights,
    ) -> Result<mpsc::Receiver<Vec<u8>>, Problem> {
        let busy = || {
            Problem::new(Code::TooManyRequests, "too many long operations are running")
                .retry_after_s(5)
        };
        let inner = self.inner();
        let places = match operation.length() {
            Length::Short => None,
            Length::Long => Some(&inner.exports),
            Length::Watch => Some(&inner.watchers),
        };
        let place = match places {
            Some(places) => Some(places.clone().try_acquire_owned().map_err(|_| busy())?),
            None => None,
        };
        let control = self.control(rights);
        let (lines, read) = mpsc::channel(LINES_MAX);
        let supervisor = inner.engine.supervisor();
        supervisor.blocking_work(Part::Service("operation"), move || {
            let _place = place;
            control.run_json(operation, request, &mut |line| lines.blocking_send(line).is_ok());
        });
        Ok(read)
    }
}
