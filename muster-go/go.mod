module github.com/musterhq/muster/muster-go

go 1.24
