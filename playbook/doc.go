// Package playbook reads playbooks: what a runtime is to do, in which order, what
// each step may touch, and where a model or a person decides.
//
//	playbook: deploy-gate
//	steps:
//	  - id: dry-run
//	    type: run
//	    run: ./deploy --dry-run
//	  - id: confirm
//	    type: pause
//	    reason: production deploy
//	  - id: deploy
//	    type: run
//	    run: ./deploy
//	    effect: irreversible
//
// [Parse] makes a typed tree of a file, with the place of each value, or says all
// that is wrong with it. What a tree means as a whole is for the checks.
//
// # Laws
//
// What a file does not say is not done: a key that is not known, or stands in
// the wrong place, is an error, and so is a second document. Printing a tree and
// parsing it gives the tree.
//
// # Expressions
//
// `when`, `outputs`, `with`, `show` and {expr: …} are expressions in CEL. They
// may name
//
//	inputs.NAME                     an input, of its type
//	steps["ID"].state               "passed", "failed", "skipped", …
//	steps["ID"].exit_code           of a run: int
//	steps["ID"].stdout, .stderr     of a run: string, capped
//	steps["ID"].output              of a claude or an agent with an output: what it said, by its schema
//	steps["ID"].text                of a claude or an agent: its text
//	steps["ID"].verdict             of a claude: string; of a pause: "approved"
//	steps["ID"].observer            the verdict of its observer
//	steps["ID"].outputs["NAME"]     an output that it declares, or that the playbook declares which it calls
//
// of steps that this one follows.
package playbook
