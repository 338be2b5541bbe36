package run

import "time"

// The stored forms of events. They are what lies on disks: a member is never
// renamed and its meaning never changes; a new version gets new types beside
// these. Members stand in the order of their names.

type (
	storedCreated struct {
		Limits storedLimits `json:"limits"`
		Task   string       `json:"task"`
		V      version      `json:"v"`
	}
	storedClaimed struct {
		By   string       `json:"by"`
		Lost *storedUsage `json:"lost,omitempty"`
		V    version      `json:"v"`
	}
	storedModelStarted struct {
		Attempt int     `json:"attempt"`
		Step    int     `json:"step"`
		V       version `json:"v"`
	}
	storedModelAnswered struct {
		Answer  storedAnswer `json:"answer"`
		Attempt int          `json:"attempt"`
		Step    int          `json:"step"`
		V       version      `json:"v"`
	}
	storedModelWithheld struct {
		Attempt int          `json:"attempt"`
		Deny    bool         `json:"deny"`
		Guard   string       `json:"guard"`
		Request bool         `json:"request"`
		Rule    string       `json:"rule"`
		Step    int          `json:"step"`
		Text    string       `json:"text,omitempty"`
		Usage   *storedUsage `json:"usage,omitempty"`
		V       version      `json:"v"`
	}
	storedModelFailed struct {
		Attempt    int           `json:"attempt"`
		Error      string        `json:"error"`
		Jitter     int           `json:"jitter"`
		Released   bool          `json:"released"`
		RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
		Retryable  bool          `json:"retryable"`
		Step       int           `json:"step"`
		Usage      *storedUsage  `json:"usage,omitempty"`
		V          version       `json:"v"`
	}
	storedBudgetSpent struct {
		Envelope string       `json:"envelope"`
		Usage    *storedUsage `json:"usage,omitempty"`
		V        version      `json:"v"`
	}
	storedCallStarted struct {
		Call int     `json:"call"`
		Step int     `json:"step"`
		V    version `json:"v"`
	}
	storedCallFinished struct {
		Call   int     `json:"call"`
		Failed bool    `json:"failed"`
		Step   int     `json:"step"`
		Text   string  `json:"text"`
		V      version `json:"v"`
	}
	storedAsked struct {
		About   About     `json:"about"`
		Call    int       `json:"call,omitempty"`
		Digest  string    `json:"digest"`
		Expires time.Time `json:"expires"`
		ID      string    `json:"id"`
		Step    int       `json:"step"`
		V       version   `json:"v"`
	}
	storedDecided struct {
		Approved bool      `json:"approved"`
		By       string    `json:"by"`
		Digest   string    `json:"digest"`
		ID       string    `json:"id"`
		Made     time.Time `json:"made,omitzero"`
		Reason   string    `json:"reason,omitempty"`
		V        version   `json:"v"`
	}
	storedReplied struct {
		By   string    `json:"by"`
		ID   string    `json:"id"`
		Made time.Time `json:"made,omitzero"`
		Text string    `json:"text"`
		V    version   `json:"v"`
	}
	storedExpired struct {
		ID string  `json:"id"`
		V  version `json:"v"`
	}
	storedResolved struct {
		By     string  `json:"by"`
		Call   int     `json:"call"`
		Choice Choice  `json:"choice"`
		Step   int     `json:"step"`
		Text   string  `json:"text,omitempty"`
		V      version `json:"v"`
	}
	storedAnswerReleased struct {
		Answer storedAnswer `json:"answer"`
		Step   int          `json:"step"`
		V      version      `json:"v"`
	}
	storedStepEvaluated struct {
		Pause   int            `json:"pause,omitempty"`
		Signals []storedReport `json:"signals,omitempty"`
		Step    int            `json:"step"`
		V       version        `json:"v"`
	}
	storedCancelled struct {
		By string  `json:"by"`
		V  version `json:"v"`
	}
	storedTimedOut struct {
		V version `json:"v"`
	}
	storedInternalError struct {
		Error string  `json:"error"`
		V     version `json:"v"`
	}
	storedEnded struct {
		Message string  `json:"message,omitempty"`
		Reason  Reason  `json:"reason"`
		Status  Status  `json:"status"`
		V       version `json:"v"`
	}
)

// codecs has the stored form of every kind of event.
var codecs = map[string]codec{
	"created": codecOf(
		func(e Created) storedCreated { return storedCreated{Limits: storeLimits(e.Limits), Task: e.Task} },
		func(s storedCreated, at Stamp) Created {
			return Created{Stamp: at, Task: s.Task, Limits: s.Limits.limits()}
		}),
	"claimed": codecOf(
		func(e Claimed) storedClaimed { return storedClaimed{By: e.By, Lost: storeUsage(e.Lost)} },
		func(s storedClaimed, at Stamp) Claimed { return Claimed{Stamp: at, By: s.By, Lost: s.Lost.usage()} }),
	"model_started": codecOf(
		func(e ModelStarted) storedModelStarted {
			return storedModelStarted{Attempt: e.Attempt, Step: e.Step}
		},
		func(s storedModelStarted, at Stamp) ModelStarted {
			return ModelStarted{Stamp: at, Step: s.Step, Attempt: s.Attempt}
		}),
	"model_answered": codecOf(
		func(e ModelAnswered) storedModelAnswered {
			return storedModelAnswered{Answer: storeAnswer(e.Answer), Attempt: e.Attempt, Step: e.Step}
		},
		func(s storedModelAnswered, at Stamp) ModelAnswered {
			return ModelAnswered{Stamp: at, Step: s.Step, Attempt: s.Attempt, Answer: s.Answer.answer()}
		}),
	"model_withheld": codecOf(
		func(e ModelWithheld) storedModelWithheld {
			return storedModelWithheld{
				Attempt: e.Attempt, Deny: e.Deny, Guard: e.Guard, Request: e.Request, Rule: e.Rule,
				Step: e.Step, Text: e.Text, Usage: storeUsage(e.Usage),
			}
		},
		func(s storedModelWithheld, at Stamp) ModelWithheld {
			return ModelWithheld{
				Stamp: at, Step: s.Step, Attempt: s.Attempt, Request: s.Request, Deny: s.Deny,
				Guard: s.Guard, Rule: s.Rule, Text: s.Text, Usage: s.Usage.usage(),
			}
		}),
	"model_failed": codecOf(
		func(e ModelFailed) storedModelFailed {
			return storedModelFailed{
				Attempt: e.Attempt, Error: e.Error, Jitter: e.Jitter, Released: e.Released,
				RetryAfter: e.RetryAfter, Retryable: e.Retryable, Step: e.Step, Usage: storeUsage(e.Usage),
			}
		},
		func(s storedModelFailed, at Stamp) ModelFailed {
			return ModelFailed{
				Stamp: at, Step: s.Step, Attempt: s.Attempt, Error: s.Error, Retryable: s.Retryable,
				Released: s.Released, RetryAfter: s.RetryAfter, Jitter: s.Jitter, Usage: s.Usage.usage(),
			}
		}),
	"budget_spent": codecOf(
		func(e BudgetSpent) storedBudgetSpent {
			return storedBudgetSpent{Envelope: e.Envelope, Usage: storeUsage(e.Usage)}
		},
		func(s storedBudgetSpent, at Stamp) BudgetSpent {
			return BudgetSpent{Stamp: at, Envelope: s.Envelope, Usage: s.Usage.usage()}
		}),
	"call_started": codecOf(
		func(e CallStarted) storedCallStarted { return storedCallStarted{Call: e.Call, Step: e.Step} },
		func(s storedCallStarted, at Stamp) CallStarted {
			return CallStarted{Stamp: at, Step: s.Step, Call: s.Call}
		}),
	"call_finished": codecOf(
		func(e CallFinished) storedCallFinished {
			return storedCallFinished{Call: e.Call, Failed: e.Failed, Step: e.Step, Text: e.Text}
		},
		func(s storedCallFinished, at Stamp) CallFinished {
			return CallFinished{Stamp: at, Step: s.Step, Call: s.Call, Text: s.Text, Failed: s.Failed}
		}),
	"asked": codecOf(
		func(e Asked) storedAsked {
			return storedAsked{
				About: e.About, Call: e.Call, Digest: e.Digest, Expires: At(e.Expires).at, ID: e.ID, Step: e.Step,
			}
		},
		func(s storedAsked, at Stamp) Asked {
			return Asked{
				Stamp: at, Step: s.Step, About: s.About, Call: s.Call, ID: s.ID, Digest: s.Digest, Expires: At(s.Expires).at,
			}
		}),
	"decided": codecOf(
		func(e Decided) storedDecided {
			return storedDecided{
				Approved: e.Approved, By: e.By, Digest: e.Digest, ID: e.ID, Made: At(e.Made).at, Reason: e.Reason,
			}
		},
		func(s storedDecided, at Stamp) Decided {
			return Decided{
				Stamp: at, ID: s.ID, Digest: s.Digest, Approved: s.Approved, By: s.By, Reason: s.Reason, Made: At(s.Made).at,
			}
		}),
	"replied": codecOf(
		func(e Replied) storedReplied {
			return storedReplied{By: e.By, ID: e.ID, Made: At(e.Made).at, Text: e.Text}
		},
		func(s storedReplied, at Stamp) Replied {
			return Replied{Stamp: at, ID: s.ID, By: s.By, Text: s.Text, Made: At(s.Made).at}
		}),
	"expired": codecOf(
		func(e Expired) storedExpired { return storedExpired{ID: e.ID} },
		func(s storedExpired, at Stamp) Expired { return Expired{Stamp: at, ID: s.ID} }),
	"resolved": codecOf(
		func(e Resolved) storedResolved {
			return storedResolved{By: e.By, Call: e.Call, Choice: e.Choice, Step: e.Step, Text: e.Text}
		},
		func(s storedResolved, at Stamp) Resolved {
			return Resolved{Stamp: at, Step: s.Step, Call: s.Call, Choice: s.Choice, By: s.By, Text: s.Text}
		}),
	"answer_released": codecOf(
		func(e AnswerReleased) storedAnswerReleased {
			return storedAnswerReleased{Answer: storeAnswer(e.Answer), Step: e.Step}
		},
		func(s storedAnswerReleased, at Stamp) AnswerReleased {
			return AnswerReleased{Stamp: at, Step: s.Step, Answer: s.Answer.answer()}
		}),
	"step_evaluated": codecOf(
		func(e StepEvaluated) storedStepEvaluated {
			return storedStepEvaluated{Pause: e.Pause, Signals: storeReports(e.Evaluation), Step: e.Step}
		},
		func(s storedStepEvaluated, at Stamp) StepEvaluated {
			return StepEvaluated{Stamp: at, Step: s.Step, Pause: s.Pause, Evaluation: evaluation(s.Signals)}
		}),
	"cancelled": codecOf(
		func(e Cancelled) storedCancelled { return storedCancelled{By: e.By} },
		func(s storedCancelled, at Stamp) Cancelled { return Cancelled{Stamp: at, By: s.By} }),
	"timed_out": codecOf(
		func(TimedOut) storedTimedOut { return storedTimedOut{} },
		func(_ storedTimedOut, at Stamp) TimedOut { return TimedOut{at} }),
	"internal_error": codecOf(
		func(e InternalError) storedInternalError { return storedInternalError{Error: e.Error} },
		func(s storedInternalError, at Stamp) InternalError { return InternalError{Stamp: at, Error: s.Error} }),
	"ended": codecOf(
		func(e Ended) storedEnded { return storedEnded{Message: e.Message, Reason: e.Reason, Status: e.Status} },
		func(s storedEnded, at Stamp) Ended {
			return Ended{Stamp: at, Status: s.Status, Reason: s.Reason, Message: s.Message}
		}),
}
