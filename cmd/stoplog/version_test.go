package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	tests := []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"nothing known", debug.BuildInfo{GoVersion: "go1.26.0"}, "stoplog (devel) go1.26.0 " + platform},
		{
			"a release",
			debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.3.1"}},
			"stoplog v0.3.1 go1.26.0 " + platform,
		},
		{
			"a working tree",
			debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "0123456789abcdef0123"},
				{Key: "vcs.modified", Value: "true"},
			}},
			"stoplog (devel) (0123456789ab, modified) go1.26.0 " + platform,
		},
		{
			"a short revision",
			debug.BuildInfo{GoVersion: "go1.26.0", Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "42"}}},
			"stoplog (devel) (42) go1.26.0 " + platform,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := buildOf(&test.info).String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
