// Package chat is a conversation as its reader sees it: sessions of turns, each
// turn one run, each run a stream of events.
//
// Nothing here streams from a model. A turn is a run, a run has a log, and what a
// reader sees is a function of that log:
//
//	message ──► Turns.Begin ──► Engine.Start ──► a run ──► its log
//	                                                         │
//	{resume} ──► Turns.GoOn ──► Engine.Resume                ▼
//	                                        Reader: record ──► events
//	                                                         │
//	one who follows live, one who comes late,  ◄── Follow ───┘
//	one who comes back with the last id
//
// # Laws
//
// One log, one story. The events of a run are a function of its records alone:
// whoever reads them, whenever, however often they went away, gets the same ones.
//
// Exactly once. Each event has a [Position], which is durable before the event
// shows; whoever comes back with the last one misses nothing and sees nothing
// twice.
//
// A reader changes nothing. A run does not know who reads it: one that stalls or
// leaves costs the run nothing.
//
// One end. A stream has exactly one [Done], which comes last: at the run's end,
// or, for who talks to it, where the run waits for people. What policy stopped
// is a Done with a status of its own, never an error.
package chat
