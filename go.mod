module github.com/stoplog/stoplog

go 1.26
