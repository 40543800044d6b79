//! In what one OpenCode 2 differs from another.

/// What an OpenCode 2 has. The one that was measured is [`Build::measured`]; the releases differ
/// from it in some of this.
#[derive(Debug, Clone)]
pub(crate) struct Build {
    /// `import`, `instructions` and others are below `/api/experimental`.
    pub(crate) is_experimental: bool,
    /// `session.create` keeps the parent that it is given.
    pub(crate) keeps_parent: bool,
    /// `session.create` keeps metadata and permissions.
    pub(crate) keeps_rules: bool,
    /// A session says how its last turn ended.
    pub(crate) keeps_outcome: bool,
    /// A message says how a turn ended.
    pub(crate) writes_idle: bool,
    /// That message says why a turn failed.
    pub(crate) explains_idle: bool,
    /// An interrupt is answered with whether something was interrupted.
    pub(crate) answers_interrupt: bool,
    /// Items of the inbox have `time.created`, not `timeCreated`.
    pub(crate) nests_time: bool,
    /// What a permission is answered with.
    pub(crate) permission_key: PermissionKey,
    /// A form is dismissed by `DELETE`, not by `POST …/cancel`.
    pub(crate) deletes_forms: bool,
    /// It says that it is there under `/api/info`, not under `/api/health`.
    pub(crate) has_info: bool,
    /// A model can be asked without a session.
    pub(crate) generates: bool,
    /// It describes its API.
    pub(crate) is_described: bool,
    /// Started again it goes on with what it was doing, where a session has no parent.
    pub(crate) resumes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionKey {
    Reply,
    Decision,
    /// Another key beside it is refused.
    DecisionOnly,
}

impl Build {
    /// As it was measured, started by `serve`.
    pub(crate) fn measured() -> Self {
        Self {
            is_experimental: false,
            keeps_parent: false,
            keeps_rules: false,
            keeps_outcome: false,
            writes_idle: false,
            explains_idle: false,
            answers_interrupt: false,
            nests_time: false,
            permission_key: PermissionKey::Reply,
            deletes_forms: false,
            has_info: false,
            generates: true,
            is_described: true,
            resumes: false,
        }
    }

    /// The same as a background server.
    pub(crate) fn background() -> Self {
        Self {
            resumes: true,
            ..Self::measured()
        }
    }

    /// As the types of 2.0.18 are: a session has rules and says how it ended, but has no parent, and
    /// the paths are the old ones.
    pub(crate) fn v2_0_18() -> Self {
        Self {
            keeps_rules: true,
            keeps_outcome: true,
            writes_idle: true,
            nests_time: true,
            ..Self::measured()
        }
    }

    /// As the releases are described.
    pub(crate) fn release() -> Self {
        Self {
            is_experimental: true,
            keeps_parent: true,
            keeps_rules: true,
            keeps_outcome: true,
            writes_idle: true,
            explains_idle: true,
            answers_interrupt: true,
            nests_time: true,
            permission_key: PermissionKey::Decision,
            deletes_forms: true,
            has_info: true,
            generates: true,
            is_described: true,
            resumes: false,
        }
    }
}
