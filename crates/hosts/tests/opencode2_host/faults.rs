//! What goes wrong between us and OpenCode.

/// Which requests and answers are lost, by a sequence that looks random and is always the same.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Of a hundred requests, so many are lost before OpenCode has them.
    pub(crate) requests: u64,
    /// Of a hundred answers, so many are lost.
    pub(crate) answers: u64,
    seed: u64,
}

impl Faults {
    pub(crate) fn loses_request(&mut self) -> bool {
        self.next() < self.requests
    }

    pub(crate) fn loses_answer(&mut self) -> bool {
        self.next() < self.answers
    }

    fn next(&mut self) -> u64 {
        let step = self.seed.wrapping_mul(6_364_136_223_846_793_005);
        self.seed = step.wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % 100
    }
}
