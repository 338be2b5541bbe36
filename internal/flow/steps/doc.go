// Package steps is a playbook at work, as a function: a run of steps is a value,
// events change it, and what is to be done follows from it. No clock, no id, no
// I/O: it is to playbooks what internal/run is to turns.
package steps
