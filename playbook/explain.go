package playbook

// StepType teaches the choice that an author makes three times a page: observer,
// claude or pause. `stoplog explain step-type` prints it, and docs/playbooks.md
// has it.
const StepType = `Where a model or a person comes into a playbook, choose one of three:

  observer   the default. The deliverable is what a step does, and a model
             watches it. It reads the step's events while the step runs and
             gives its verdict when the step ends; on_verdict says what the
             verdict leads to, on_anomaly: file-ticket files what it saw. It
             costs the run no step and never slows one.

  claude     rare. The verdict itself is the deliverable: a gate over a dry
             run, a summary, an assertion that needs context. Its output is a
             schema with an enum verdict, each value of which on_verdict maps.
             If every verdict would lead to continue, it is an observer.

  pause      always, for what is irreversible, destroys, spends money or changes
             an identity. A person decides, about exactly what they are shown;
             silence is a no. No model's verdict stands in for it, however sure.

Three questions, in this order:

  1. Can it be undone by running something again? If not: a pause before it, and
     effect: irreversible (or touches: [money], [identity]) on the step.
  2. Does a later step need the verdict to decide? If so: claude.
  3. Otherwise: an observer on the step that does the work.

Commands are type: run; open-ended work with tools is type: agent; steps that you
have elsewhere are type: playbook.
`
