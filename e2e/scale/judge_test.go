package main

import (
	"strings"
	"testing"
	"time"
)

func at(second int64) time.Time { return time.Unix(second, 0) }

func TestJudgeFindsWrongRestarts(t *testing.T) {
	clients := []life{
		{pod: "csi-a", node: "node-1", began: at(10), ended: at(100)},
		{pod: "csi-b", node: "node-1", began: at(102)},
		{pod: "csi-c", node: "node-2", began: at(10), ended: at(200)},
		{pod: "csi-d", node: "node-2", began: at(202)},
		{pod: "csi-e", node: "node-3"}, // has no sandbox yet
	}
	for name, c := range map[string]struct {
		workloads []life
		want      string
	}{
		"restarted once": {workloads: []life{
			{pod: "app-0", node: "node-1", began: at(50), ended: at(103), cause: evicted},
			{pod: "app-0", node: "node-1", began: at(104)},
		}},
		"restarted once more where it went to": {workloads: []life{
			{pod: "app-0", node: "node-1", began: at(50), ended: at(103), cause: evicted},
			{pod: "app-0", node: "node-2", began: at(104), ended: at(203), cause: evicted},
			{pod: "app-0", node: "node-1", began: at(204)},
		}},
		"in the second in which the plugin began": {workloads: []life{
			{pod: "app-0", node: "node-1", began: at(102), ended: at(102), cause: evicted},
			{pod: "app-0", node: "node-1", began: at(102)},
		}},
		"gone before it had a mount": {workloads: []life{
			{pod: "app-0", node: "node-1", began: at(50), ended: at(103), cause: evicted},
			{pod: "app-0", node: "node-3", ended: at(104)},
			{pod: "app-0", node: "node-1", began: at(105)},
		}},
		"twice for one plugin pod": {want: "restarted though their mount was alive", workloads: []life{
			{pod: "app-0", node: "node-1", began: at(50), ended: at(103), cause: evicted},
			{pod: "app-0", node: "node-1", began: at(104), ended: at(110), cause: evicted},
		}},
		"while the plugin pod is still going": {want: "restarted though their mount was alive", workloads: []life{
			{pod: "app-0", node: "node-1", began: at(50), ended: at(101), cause: evicted},
		}},
		"left behind": {want: "not restarted though their mount is dead", workloads: []life{
			{pod: "app-0", node: "node-1", began: at(50)},
		}},
		"deleted by somebody": {want: "in another way", workloads: []life{
			{pod: "app-0", node: "node-1", began: at(50), ended: at(103)},
		}},
		"never restarted": {want: "never restarted", workloads: []life{
			{pod: "app-0", node: "node-3", began: at(50)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			err := judge(c.workloads, clients).err()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the verdict is %v, want %q", err, c.want)
			}
		})
	}
}
