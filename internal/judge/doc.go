// Package judge has guards that are not patterns: they ask a model, or a service,
// what is wrong with a text.
//
//	text ─► windows ─► Asker ─┬─ Model: a rubric, an answer in a strict form
//	          │               └─ Service: a documented JSON contract over HTTP
//	          ▼
//	     held until answered; the next ones are asked meanwhile
//
// A guard works on windows, a sentence or a few at a time, or on the whole of a
// text; that it judges only after the fact is the mode of the guard (audit).
//
// # Laws
//
// Windows are cut by the text alone, never by how it arrived, and what has been
// settled after a prefix is a function of that prefix: a window leaves when it was
// answered and as many more have been read as may be asked ahead, or the text has
// ended. The answers themselves are taken as they come.
//
// Closed: a judge that cannot be reached, is late, or says something that is not
// in its form is an error, which makes a guard that enforces deny. It is asked
// again a few times where its failure may pass.
//
// What is judged is data. A model is told so, by marks that the text cannot know,
// and its answer is read by its form, never by its words.
//
// A judge's own calls go through the door like anyone's, under a profile that may
// name no judge.
package judge
