import JSONCore
import Testing

@Suite struct JSONValueTests {
  @Test func aTreeIsReadAndWrittenWithoutLoss() throws {
    let text =
      #"{"a":1000000000000000001,"b":[1.10,-0,1e400,true,false,null],"c":{"d":"é\"\\"},"c2":{},"e":[],"a":18446744073709551616}"#
    let value = try JSONValue(parsing: text)
    #expect(value.text == text)
    #expect(value["a"] == .number("18446744073709551616"))
    #expect(value["b"]?[0] == .number("1.10"))
    #expect(value["b"]?[9] == nil)
    #expect(value["c"]?["d"]?.string == "é\"\\")
    #expect(value["zz"] == nil)
  }

  @Test func blanksMayStandEverywhere() throws {
    let value = try JSONValue(parsing: " {\t\"a\" :\n[ 1 ,\r{ \"b\" : [ ] } ] , \"c\" : { } } ")
    #expect(value == ["a": [1, ["b": []]], "c": [:]])
    #expect(value.text == #"{"a":[1,{"b":[]}],"c":{}}"#)
  }

  @Test func kindsAreToldApart() {
    #expect(JSONValue.number(5).int == 5)
    #expect(JSONValue.number("5.0").int == nil)
    #expect(JSONValue.number("5.5").double == 5.5)
    #expect(JSONValue.string("5").int == nil)
    #expect(JSONValue.bool(true).bool == true)
    #expect(JSONValue.null.isNull)
    #expect((["x": nil] as JSONValue)["x"]?.isNull == true)
  }

  @Test func whatIsNotJSONIsRefusedWithItsPlace() {
    #expect(throws: JSONFault(.unexpectedByte, at: 1)) { try JSONValue(parsing: "{a}") }
    #expect(throws: JSONFault(.tooDeep, at: 2)) { try JSONValue(parsing: "[[[]]]", depthMax: 2) }
    #expect(throws: JSONFault(.unexpectedEnd, at: 0)) { try JSONValue(parsing: "") }
  }
}
