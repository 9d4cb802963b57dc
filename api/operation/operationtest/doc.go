// Package operationtest has what tests of several packages need of operations:
// requests that they must refuse ([Refused]), and the judgement of requests and answers
// by the document ([Document]).
package operationtest
