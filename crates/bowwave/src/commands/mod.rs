pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod lab;
pub(crate) mod policy;
pub(crate) mod privilege;
pub(crate) mod reproduce;
pub(crate) mod run;
