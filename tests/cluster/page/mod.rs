//! The product's page, sentence by sentence, each in a namespace of its own. These cases disturb nobody, so they run side by side.

mod completion;
mod copies;
mod deleting;
mod doctor;
mod events;
mod examples;
mod features;
mod guides;
mod handles;
mod health;
mod holding;
mod mounts;
mod privilege;
mod statistics;
mod status;
mod tool_rights;
mod ui;
mod why;
mod why_binding;
mod why_refused;
