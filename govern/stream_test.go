package govern_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

// TestCutAfterAWhile: of a frame whose rest waits the settled part is out after
// 250 ms, and not before; what waits on stays.
func TestCutAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, provider := live()
		resp, err := open(t, guard.Redact, up, (&records{}).add).RoundTrip(ask(t.Context(), t, chat, "hi", true))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		client := listen(resp.Body)

		io.WriteString(provider, chunk("first"))
		synctest.Wait()
		if got := client.text(); got != chunk("first") {
			t.Fatalf("a clean frame does not leave at once: %q", got)
		}
		time.Sleep(10 * time.Second) // nothing waits: no clock runs
		io.WriteString(provider, chunk("The token is ghp_Zk3v"))
		time.Sleep(249 * time.Millisecond)
		synctest.Wait()
		if got := client.text(); got != chunk("first") {
			t.Fatalf("before 250 ms: %q", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := client.text(); got != chunk("first")+chunk("The token is ") {
			t.Fatalf("after 250 ms: %q", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := client.text(); strings.Contains(got, "ghp_") {
			t.Fatalf("after an hour: %q", got)
		}
		io.WriteString(provider, chunk(strings.TrimPrefix(secret, "ghp_Zk3v")+" yes")+chatEnd)
		provider.Close()
		<-client.done
		if got := client.text(); !strings.Contains(got, `"[redacted:github-pat]`) || !strings.Contains(got, "yes") || strings.Contains(got, secret[4:10]) || client.err != io.EOF {
			t.Errorf("in the end: %q, %v", got, client.err)
		}
	})
}

// TestEachFrameHasItsTime: the clock of one frame is not that of the next.
func TestEachFrameHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, provider := live()
		resp, err := open(t, guard.Redact, up, (&records{}).add).RoundTrip(ask(t.Context(), t, chat, "hi", true))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		client := listen(resp.Body)
		io.WriteString(provider, chunk("one ghp_"))
		time.Sleep(200 * time.Millisecond)
		io.WriteString(provider, chunk(" two ghp_")) // lets the first frame go, and waits itself
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if got := client.text(); got != chunk("one ghp_") {
			t.Errorf("200 ms after the second: %q", got)
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if got := client.text(); got != chunk("one ghp_")+chunk(" two ") {
			t.Errorf("250 ms after the second: %q", got)
		}
		provider.CloseWithError(io.ErrUnexpectedEOF)
		<-client.done
	})
}

// TestDrain: after a stop the upstream is read on for its usage, but not for
// ever.
func TestDrain(t *testing.T) {
	for _, ends := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			up, provider := live()
			records := &records{}
			resp, err := open(t, guard.Deny, up, records.add).RoundTrip(ask(t.Context(), t, messages, "hi", true))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			client := listen(resp.Body)
			io.WriteString(provider, messageStart()+textDelta("so: "+secret+" !")+textDelta("more"))
			synctest.Wait()
			if got := client.text(); !strings.Contains(got, `"so: "`) || strings.Contains(got, "more") {
				t.Errorf("after the stop the client has %q", got)
			}
			began := time.Now()
			if ends {
				time.Sleep(20 * time.Second)
				io.WriteString(provider, messageEnd())
				provider.Close()
			}
			<-client.done
			took := time.Since(began)
			got := client.text()
			if !strings.Contains(got, `"stop_reason":"refusal"`) || !strings.HasSuffix(got, event("message_stop", "")) || client.err != io.EOF {
				t.Errorf("the end is %q, %v", got, client.err)
			}
			s := records.settled()[0]
			if ends && (took != 20*time.Second || s.Usage.Output != 9 || s.Usage.Estimated) {
				t.Errorf("the upstream ended: after %v settled as %+v", took, s)
			}
			if !ends && (took != 30*time.Second || !s.Usage.Estimated) {
				t.Errorf("the upstream went on: after %v settled as %+v", took, s)
			}
		})
	}
}

// TestSilenceAfterTheEnd: an Anthropic stream may hold several messages, so that
// its end is that of the connection; one that never comes is not waited for long.
func TestSilenceAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, provider := live()
		records := &records{}
		resp, err := open(t, guard.Redact, up, records.add).RoundTrip(ask(t.Context(), t, messages, "hi", true))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		client := listen(resp.Body)
		one := messageStart() + textDelta("one") + messageEnd()
		io.WriteString(provider, one)
		time.Sleep(29 * time.Second)
		io.WriteString(provider, messageStart())
		time.Sleep(time.Minute) // the second message takes its time
		io.WriteString(provider, textDelta("two")+messageEnd())
		synctest.Wait()
		began := time.Now()
		<-client.done
		if took := time.Since(began); took != 30*time.Second || client.err != io.EOF || client.text() != one+strings.Replace(one, "one", "two", 1) {
			t.Errorf("after %v: %q, %v", took, client.text(), client.err)
		}
		if s := records.settled()[0]; s.Status != "completed" {
			t.Errorf("settled as %+v", s)
		}
	})
}

// TestSlowHeader: an upstream whose header never comes is waited for as long as
// the caller does.
func TestSlowHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := &records{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := open(t, guard.Redact, upstream(hang), records.add).RoundTrip(ask(ctx, t, chat, "hi", true))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if s := records.settled()[0]; s.Status != "cancelled" || !s.Usage.Estimated {
			t.Errorf("settled as %+v", s)
		}
	})
}

// TestCloseWhileReading closes bodies that are being read, that were not, and
// that were closed before: nothing hangs and each is settled once.
func TestCloseWhileReading(t *testing.T) {
	for _, closers := range []int{1, 4} {
		for _, reads := range []bool{false, true} {
			t.Run(fmt.Sprint(closers, "/", reads), func(t *testing.T) {
				for range 50 {
					up, provider := live()
					records := &records{}
					resp, err := open(t, guard.Redact, up, records.add).RoundTrip(ask(t.Context(), t, chat, "hi", true))
					if err != nil {
						t.Fatal(err)
					}
					var client *tap
					if reads {
						client = listen(resp.Body)
						io.WriteString(provider, chunk("hi")+chunk("wait ghp_"))
					}
					var wg sync.WaitGroup
					for range closers {
						wg.Go(func() {
							if err := resp.Body.Close(); err != nil {
								t.Error(err)
							}
						})
					}
					wg.Wait()
					if reads {
						<-client.done
						if client.err == nil || client.err == io.EOF || strings.Contains(client.text(), "ghp_") {
							t.Errorf("the client got %q, %v", client.text(), client.err)
						}
					}
					if _, err := resp.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
						t.Errorf("reading after Close: %v", err)
					}
					if _, err := io.WriteString(provider, "x"); err == nil {
						t.Error("the upstream is still read")
					}
					if s := records.settled(); len(s) != 1 || s[0].Status != "cancelled" {
						t.Errorf("settled as %+v", s)
					}
				}
			})
		}
	}
}

// TestLeaveWhileReading: a caller whose context ends is let go of, whether the
// upstream looks at the context or not.
func TestLeaveWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, provider := live()
		records := &records{}
		ctx, leave := context.WithCancel(t.Context())
		resp, err := open(t, guard.Redact, up, records.add).RoundTrip(ask(ctx, t, chat, "hi", true))
		if err != nil {
			t.Fatal(err)
		}
		client := listen(resp.Body)
		io.WriteString(provider, chunk("hi"))
		synctest.Wait()
		leave()
		<-client.done
		if !errors.Is(client.err, context.Canceled) || client.text() != chunk("hi") {
			t.Errorf("the client got %q, %v", client.text(), client.err)
		}
		if s := records.settled(); len(s) != 1 || s[0].Status != "cancelled" || !s[0].Usage.Estimated {
			t.Errorf("settled as %+v", s)
		}
	})
}

// TestCallsShareNothing runs calls side by side: each has its own run, text and
// findings.
func TestCallsShareNothing(t *testing.T) {
	records := &records{}
	door := open(t, guard.Redact, upstream(echo), records.add)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			ctx, exchange := govern.Watch(t.Context())
			resp, err := door.RoundTrip(ask(ctx, t, chat, fmt.Sprintf("call-%d", i), true))
			if err != nil {
				t.Error(err)
				return
			}
			said, err := io.ReadAll(resp.Body)
			if err != nil || !strings.Contains(string(said), fmt.Sprintf("call-%d ", i)) {
				t.Errorf("call %d: %q, %v", i, said, err)
			}
			if o, ok := exchange.Outcome(); !ok || o.Status != "redacted" || o.Run != resp.Header.Get("Stoplog-Run") {
				t.Errorf("call %d: %+v %v", i, o, ok)
			}
		})
	}
	wg.Wait()
	prints := map[string]int{}
	for _, r := range records.all {
		if v, ok := r.Fact.(govern.Verdict); ok {
			prints[v.Fingerprint]++
		}
	}
	if len(prints) != 20 {
		t.Errorf("%d findings are told apart: %v", len(prints), prints)
	}
}
